package io.stele.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Collections;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

/**
 * Programs by schema id: those that came with the function, then those of Python, which is asked once for an id that
 * was not pinned. An id unknown there is asked for again after a while. One for each function and process.
 */
final class Writers {
  /** What is known of an id: a program, or the reason why its records cannot be read. */
  record Known(JsonNode program, String refusal) {}

  private static final long ASK_AGAIN = TimeUnit.SECONDS.toNanos(30);
  private static final Map<String, Writers> OPEN = Collections.synchronizedMap(new Recent<>(64));

  private final Map<Integer, Known> known = new ConcurrentHashMap<>();
  private final Map<Integer, Long> unknown = new Recent<>(10_000);
  private final SchemaLookup asking;

  private Writers(JsonNode spec) {
    spec.get("programs").properties().forEach(each -> known.put(id(each), new Known(each.getValue(), null)));
    spec.get("refused").properties().forEach(each -> known.put(id(each), new Known(null, each.getValue().textValue())));
    asking = spec.hasNonNull("ask") ? SchemaLookup.of(spec.get("ask")) : null;
  }

  /** Those of the function of a name. */
  static Writers of(String name) {
    return OPEN.computeIfAbsent(name, each -> new Writers(Spec.read(each)));
  }

  private static int id(Map.Entry<String, JsonNode> entry) {
    return Integer.parseInt(entry.getKey());
  }

  /** What is known of an id; null when there is no such schema. Throws when the registry does not answer. */
  Known find(int id) {
    Known found = known.get(id);
    return found != null || asking == null || id < 0 ? found : ask(id);
  }

  private synchronized Known ask(int id) {
    Known found = known.get(id);
    Long asked = unknown.get(id);
    if (found != null || asked != null && System.nanoTime() - asked < ASK_AGAIN) {
      return found;
    }
    JsonNode answer = asking.about(id);
    if (answer.hasNonNull("program")) {
      found = new Known(answer.get("program"), null);
    } else if (answer.hasNonNull("refused")) {
      found = new Known(null, answer.get("refused").textValue());
    } else if (answer.hasNonNull("failed")) {
      throw TaskErrors.raised(answer.get("failed").textValue(), null);
    } else {
      unknown.put(id, System.nanoTime());
      return null;
    }
    known.put(id, found);
    return found;
  }
}
