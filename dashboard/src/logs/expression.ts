import type { Matches } from "./filter";

/** How long a batch of lines may take before an expression counts as one that does not end. */
export const SECONDS = 2;

export class BadExpression extends Error {}

/** Throws BadExpression with the reason where the text is no regular expression. */
export function checkExpression(source: string): void {
  try {
    new RegExp(source, "iu");
  } catch (error) {
    throw new BadExpression(error instanceof Error ? error.message : String(error));
  }
}

/**
 * A regular expression in a Worker of its own: one that takes for ever on some line holds up the
 * Worker, which is ended, and not the page.
 */
export class WorkerExpression implements Matches {
  private readonly worker: Worker;
  private next = 0;
  private stopped = false;
  private readonly waiting = new Map<
    number,
    { resolve: (answers: boolean[]) => void; reject: (error: Error) => void; timer: number }
  >();

  constructor(
    source: string,
    private readonly slow: string,
    private readonly seconds = SECONDS,
  ) {
    checkExpression(source);
    this.worker = new Worker(new URL("./expression.worker.ts", import.meta.url), {
      type: "module",
    });
    this.worker.onmessage = (event: MessageEvent<{ id: number; answers: boolean[] }>) => {
      const asked = this.waiting.get(event.data.id);
      this.waiting.delete(event.data.id);
      window.clearTimeout(asked?.timer);
      asked?.resolve(event.data.answers);
    };
    this.worker.onerror = (event) => this.stop(new Error(event.message));
    this.worker.postMessage({ source });
  }

  test(texts: readonly string[]): Promise<readonly boolean[]> {
    if (this.stopped) return Promise.reject(new Error(this.slow));
    this.next += 1;
    const id = this.next;
    return new Promise((resolve, reject) => {
      const timer = window.setTimeout(() => this.stop(new Error(this.slow)), this.seconds * 1000);
      this.waiting.set(id, { resolve, reject, timer });
      this.worker.postMessage({ id, texts });
    });
  }

  /** Ends the Worker, whatever it does. */
  stop(error: Error = new Error(this.slow)): void {
    this.stopped = true;
    this.worker.terminate();
    for (const asked of this.waiting.values()) {
      window.clearTimeout(asked.timer);
      asked.reject(error);
    }
    this.waiting.clear();
  }
}
