/** A job's manifest as its user wrote it. Pure. */

type Object_ = Readonly<Record<string, unknown>>;

/** What a server adds to any object, and what another submission must not carry. */
const ADDED = [
  "uid",
  "resourceVersion",
  "generation",
  "creationTimestamp",
  "managedFields",
  "selfLink",
  "ownerReferences",
  "finalizers",
];

/** Without status and what the server added, so that it can be submitted again. */
export function asWritten(manifest: Object_): Object_ {
  const { status: _, ...rest } = manifest;
  const metadata = Object.entries((rest.metadata ?? {}) as Object_).filter(
    ([name]) => !ADDED.includes(name),
  );
  return { ...rest, metadata: Object.fromEntries(metadata) };
}
