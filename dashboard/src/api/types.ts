/** Names of API values that all pages use. */
export type * from "./schema";

/** How paths of the API and of our pages name a kind. */
export type KindPath = "mpijobs" | "trainjobs";

export function kindPath(kind: string): KindPath {
  return kind === "TrainJob" ? "trainjobs" : "mpijobs";
}
