import type { KindPath } from "../api/types";

/** Which job a page shows. `uid` tells it from another of the same name; empty until it is known. */
export interface JobPlace {
  readonly namespace: string;
  readonly kindPath: KindPath;
  readonly name: string;
  readonly uid: string;
}

/** For the names in paths of the API. */
export function placeNames({ namespace, name }: JobPlace): { namespace: string; name: string } {
  return { namespace, name };
}

export function kindOf(place: Pick<JobPlace, "kindPath">): "MPIJob" | "TrainJob" {
  return place.kindPath === "trainjobs" ? "TrainJob" : "MPIJob";
}
