/** Claims that launcher and workers mount, and the size of their shared memory. */
import { Checkbox } from "@patternfly/react-core";
import { useId } from "react";
import { words } from "../words";
import { usePods } from "./context";
import { TextField } from "./fields";
import * as pods from "./model/pods";
import { Said } from "./Problems";
import { Add, Adds, Cell, Line } from "./rows";

const said = words.create.advanced;

export function Volumes() {
  const job = usePods();
  const claims = job.view(pods.claims);
  const others = job.view(pods.otherVolumes);
  const paths = job.view((_manifest, roles) =>
    roles.flatMap((role) => [
      [...role.pod, "volumes"],
      [...role.container, "volumeMounts"],
    ]),
  );
  return (
    <>
      {claims.map((row, n) => (
        <ClaimLine key={`${row.volume} ${row.roles.join()}`} row={row} n={n + 1} />
      ))}
      {others > 0 && <p className="odh-muted">{said.otherVolumes(others)}</p>}
      <Said paths={paths} />
      <Adds>
        <Add
          onClick={() =>
            job.change((manifest, roles) =>
              pods.withNewClaim(manifest, roles, { claim: "", path: "/data", readOnly: false }),
            )
          }
        >
          {said.addVolume}
        </Add>
      </Adds>
      <TextField
        label={said.shm}
        help={said.shmHelp}
        paths={[]}
        placeholder="8Gi"
        value={job.view(pods.sharedMemory)}
        onChange={(size) =>
          job.change((manifest, roles) => pods.withSharedMemory(manifest, roles, size.trim()))
        }
      />
    </>
  );
}

function ClaimLine({ row, n }: { row: pods.ClaimRow; n: number }) {
  const job = usePods();
  const id = useId();
  const set = (next: Partial<pods.Claim>) =>
    job.change((manifest, roles) => pods.withClaim(manifest, roles, row, { ...row, ...next }));
  return (
    <Line
      name={said.row(said.volumes, n)}
      onRemove={() =>
        job.change((manifest, roles) => pods.withoutVolume(manifest, roles, row.volume, row.roles))
      }
    >
      <Cell label={said.claim} value={row.claim} onChange={(claim) => set({ claim })} />
      <Cell label={said.path} value={row.path} onChange={(path) => set({ path })} />
      <Checkbox
        id={id}
        label={said.readOnly}
        isChecked={row.readOnly}
        onChange={(_event, readOnly) => set({ readOnly })}
      />
      {row.roles.length === 1 && <span className="odh-muted">{said.only(row.roles[0] ?? "")}</span>}
    </Line>
  );
}
