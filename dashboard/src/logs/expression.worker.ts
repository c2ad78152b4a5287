/** Tries lines by a regular expression; it can be ended from outside at any moment. */

interface Begin {
  readonly source: string;
}
interface Ask {
  readonly id: number;
  readonly texts: readonly string[];
}

let expression: RegExp | null = null;

self.onmessage = (event: MessageEvent<Begin | Ask>) => {
  const asked = event.data;
  if ("source" in asked) {
    expression = new RegExp(asked.source, "iu");
    return;
  }
  const tried = expression;
  self.postMessage({
    id: asked.id,
    answers: asked.texts.map((text) => tried?.test(text) ?? false),
  });
};
