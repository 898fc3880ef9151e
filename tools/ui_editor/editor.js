// The editor of schema texts. Each textarea with `data-editor` gets one in front of it; without this script it stays as it is.
import { EditorState, Compartment, StateEffect, StateField } from "@codemirror/state";
import {
  EditorView, keymap, lineNumbers, highlightActiveLine, highlightActiveLineGutter, drawSelection, Decoration,
} from "@codemirror/view";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { bracketMatching, indentOnInput, syntaxHighlighting, HighlightStyle, StreamLanguage } from "@codemirror/language";
import { json } from "@codemirror/lang-json";
import { xml } from "@codemirror/lang-xml";
import { protobuf } from "@codemirror/legacy-modes/mode/protobuf";
import { c } from "@codemirror/legacy-modes/mode/clike";
import { tags } from "@lezer/highlight";

const languages = {
  avro: () => json(),
  json: () => json(),
  xsd: () => xml(),
  protobuf: () => StreamLanguage.define(protobuf),
  thrift: () => StreamLanguage.define(c),
};
const pick = (name) => (languages[name] ? languages[name]() : []);

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.tagName, tags.typeName], color: "var(--t-key)" },
  { tag: [tags.string, tags.attributeValue], color: "var(--t-string)" },
  { tag: [tags.keyword, tags.bool, tags.null, tags.attributeName], color: "var(--t-word)" },
  { tag: tags.number, color: "var(--t-number)" },
  { tag: tags.comment, color: "var(--t-comment)" },
]);
const look = EditorView.theme({
  "&": { border: "1px solid var(--strong-line)", borderRadius: ".375rem", backgroundColor: "var(--page)", color: "var(--ink)", fontSize: ".8125rem", maxHeight: "44rem" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "1px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55", minHeight: "16rem", overflow: "auto" },
  ".cm-content": { caretColor: "var(--ink)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "var(--raised)", color: "var(--quiet)", border: "0" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--sunken)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--accent-soft)" },
  ".cm-problem": { backgroundColor: "var(--bad-soft)", boxShadow: "inset 3px 0 var(--bad)" },
});

const setProblem = StateEffect.define();
const problemField = StateField.define({
  create: () => Decoration.none,
  update(marks, change) {
    let found = marks.map(change.changes);
    for (const effect of change.effects) {
      if (!effect.is(setProblem)) continue;
      const line = Math.min(effect.value, change.state.doc.lines);
      found = Decoration.set([Decoration.line({ class: "cm-problem" }).range(change.state.doc.line(line).from)]);
    }
    return found;
  },
  provide: (field) => EditorView.decorations.from(field),
});

const open = (area) => {
  const host = document.createElement("div");
  host.className = "cm-editor";
  area.after(host);
  // In a shadow root the editor's styles are constructed sheets, which the pages' policy allows.
  const root = host.attachShadow({ mode: "open" });
  const parent = document.createElement("div");
  root.append(parent);
  const language = new Compartment();
  const label = area.labels && area.labels[0] ? area.labels[0].querySelector("span").textContent : "Schema";
  const view = new EditorView({
    root,
    parent,
    state: EditorState.create({
      doc: area.value,
      extensions: [
        lineNumbers(), highlightActiveLine(), highlightActiveLineGutter(), history(), drawSelection(), indentOnInput(),
        bracketMatching(), EditorView.lineWrapping, syntaxHighlighting(colours), look, problemField,
        language.of(pick(area.dataset.editor)), keymap.of([...defaultKeymap, ...historyKeymap]),
        EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false", "aria-multiline": "true", tabindex: "0" }),
        EditorView.updateListener.of((update) => { if (update.docChanged) area.value = update.state.doc.toString(); }),
      ],
    }),
  });
  area.hidden = true;
  if (area.dataset.line) {
    const line = view.state.doc.line(Math.min(Number(area.dataset.line), view.state.doc.lines));
    view.dispatch({ effects: setProblem.of(Number(area.dataset.line)), selection: { anchor: line.from }, scrollIntoView: true });
  }
  const format = area.form && area.form.elements.namedItem("format");
  if (format) format.addEventListener("change", () => view.dispatch({ effects: language.reconfigure(pick(format.value)) }));
};
document.querySelectorAll("textarea[data-editor]").forEach(open);
