/**
 * Calls of the REST API. The browser's cookie is the login; every change carries the header that no
 * page of another site can send. A refusal becomes a `ProblemError`, a server that does not answer
 * a `ServerGone`: a caller never takes one for the other.
 */
import type { Operations, Problem } from "./schema";

export class ProblemError extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail);
  }

  get status(): number {
    return this.problem.status;
  }
}

export class ServerGone extends Error {}

type Query = Record<string, string | number | boolean | readonly (string | number)[] | undefined>;

export interface Options {
  /** Values for the {names} in the path. */
  path?: Record<string, string | number>;
  query?: Query;
  /** Sent as JSON, or as it is where it is a text (YAML) or a form. */
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
type PathsOf<M extends Method> = {
  [K in keyof Operations]: K extends `${M} ${infer P}` ? P : never;
}[keyof Operations];
type Answer<M extends Method, P extends string> = `${M} ${P}` extends keyof Operations
  ? Operations[`${M} ${P}` & keyof Operations]["answer"]
  : unknown;
type QueryOf<M extends Method, P extends string> = `${M} ${P}` extends keyof Operations
  ? Operations[`${M} ${P}` & keyof Operations]["query"]
  : Query;

export function get<P extends PathsOf<"GET">>(
  path: P,
  options: Omit<Options, "query"> & { query?: QueryOf<"GET", P> } = {},
): Promise<Answer<"GET", P>> {
  return request("GET", path, options as Options) as Promise<Answer<"GET", P>>;
}

export function post<P extends PathsOf<"POST">>(
  path: P,
  options: Omit<Options, "query"> & { query?: QueryOf<"POST", P> } = {},
): Promise<Answer<"POST", P>> {
  return request("POST", path, options as Options) as Promise<Answer<"POST", P>>;
}

export function remove<P extends PathsOf<"DELETE">>(
  path: P,
  options: Omit<Options, "query"> & { query?: QueryOf<"DELETE", P> } = {},
): Promise<Answer<"DELETE", P>> {
  return request("DELETE", path, options as Options) as Promise<Answer<"DELETE", P>>;
}

/** Any call; `get`, `post` and `remove` know the types of the answer. */
export async function request(method: Method, path: string, options: Options = {}) {
  const { body, contentType } = encoded(options.body);
  let response: Response;
  try {
    response = await fetch(address(path, options.path, options.query), {
      method,
      body,
      credentials: "same-origin",
      redirect: "error",
      signal: options.signal,
      headers: {
        Accept: "application/json",
        "X-Requested-With": "dashboard",
        ...(contentType ? { "Content-Type": contentType } : {}),
        ...options.headers,
      },
    });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new ServerGone("the server does not answer", { cause: error });
  }
  const text = await response.text();
  if (!response.ok) throw new ProblemError(problem(response.status, text));
  return text ? (JSON.parse(text) as unknown) : undefined;
}

/** The path with its names filled in and its query; lists are joined by commas, empty values left out. */
export function address(path: string, names: Options["path"] = {}, query: Query = {}): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = names[name];
    if (value === undefined || value === "") throw new Error(`${path}: ${name} is missing`);
    return encodeURIComponent(String(value));
  });
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    const text = Array.isArray(value) ? value.join(",") : String(value ?? "");
    if (text !== "") search.set(name, text);
  }
  const asked = search.toString();
  return asked ? `${filled}?${asked}` : filled;
}

function encoded(body: unknown): { body?: BodyInit; contentType?: string } {
  if (body === undefined) return {};
  if (body instanceof FormData) return { body };
  if (typeof body === "string") return { body, contentType: "application/yaml" };
  return { body: JSON.stringify(body), contentType: "application/json" };
}

function problem(status: number, text: string): Problem {
  try {
    const found = JSON.parse(text) as Problem;
    if (typeof found.detail === "string") return found;
  } catch {
    // A proxy's page, not the server's answer.
  }
  const detail = `the server, or a proxy before it, answered ${status}`;
  return { type: "about:blank", title: "", status, detail, hint: "", errors: [] };
}
