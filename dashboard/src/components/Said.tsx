/** A sentence of the server's: what it has between backticks is shown as code. */
import { Fragment } from "react";

export function Said({ children }: { children: string }) {
  const parts = children.split(/`([^`]+)`/);
  return parts.map((part, place) =>
    place % 2 === 1 ? (
      // biome-ignore lint/suspicious/noArrayIndexKey: parts of one text have no other name
      <code key={place}>{part}</code>
    ) : (
      // biome-ignore lint/suspicious/noArrayIndexKey: parts of one text have no other name
      <Fragment key={place}>{part}</Fragment>
    ),
  );
}
