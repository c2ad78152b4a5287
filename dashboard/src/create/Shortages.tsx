/** What the job asks for and its project's quotas have no room for, in numbers. */
import { Alert } from "@patternfly/react-core";
import { words } from "../words";
import { isTrainJob, useForm } from "./context";
import { shortages } from "./model/demand";
import { useQuota } from "./server";

export function Shortages() {
  const { manifest, namespace } = useForm();
  const { data } = useQuota(namespace);
  if (isTrainJob(manifest) || !data) return null;
  return (
    <>
      {shortages(manifest, data).map((one) => (
        <Alert
          component="p"
          key={one.quota + one.resource}
          isInline
          variant={one.asked > one.hard ? "danger" : "warning"}
          title={words.create.quota.short({
            ...one,
            each: shown(one.resource, one.each),
            asked: shown(one.resource, one.asked),
            hard: shown(one.resource, one.hard),
            used: shown(one.resource, one.used),
            left: shown(one.resource, one.left),
          })}
        >
          {words.create.quota.fits(one.fitting)}
        </Alert>
      ))}
    </>
  );
}

/** Memory in GiB, all else as it is. */
export function shown(resource: string, value: number): string {
  if (/memory|storage/.test(resource)) return `${trimmed(value / 1024 ** 3)} GiB`;
  return trimmed(value);
}

const trimmed = (value: number): string => String(Math.round(value * 100) / 100);
