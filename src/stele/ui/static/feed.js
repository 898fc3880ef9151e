// The journal as it grows: rows of new entries come in at the top, and nothing else of the page moves.
(() => {
  const MOST_ROWS = 1000;
  const feed = document.querySelector("[data-feed]");
  if (!feed) return;
  const body = feed.querySelector("tbody");
  const address = new URL(feed.dataset.feed, location.href);
  let source = null;

  const addRows = (event) => {
    address.searchParams.set("after", event.lastEventId);
    const first = body.rows[0];
    const before = first && first.getBoundingClientRect().top;
    body.insertAdjacentHTML("afterbegin", event.data);
    feed.querySelector(".scroll").hidden = false;
    feed.querySelector(".empty")?.remove();
    // A reader at the top sees what is new; one further down keeps his place.
    if (first && before < 0) scrollBy({ top: first.getBoundingClientRect().top - before, behavior: "instant" });
    if (body.rows.length <= MOST_ROWS) return;
    while (body.rows.length > MOST_ROWS) body.deleteRow(-1);
    const older = new URL(location.href);
    older.searchParams.set("before", body.rows[body.rows.length - 1].dataset.seq);
    const link = feed.querySelector('a[rel="next"]');
    if (link) link.href = older.href;
  };

  const open = () => {
    source = new EventSource(address);
    source.addEventListener("entries", addRows);
    source.addEventListener("error", () => {
      if (source.readyState === EventSource.CLOSED)
        document.getElementById("feed-state").textContent = " New entries have stopped coming.";
    });
  };
  // A browser has few connections to a server: pages nobody looks at hold none.
  document.addEventListener("visibilitychange", () => {
    if (source) source.close();
    source = null;
    if (!document.hidden) open();
  });
  if (!document.hidden) open();
})();
