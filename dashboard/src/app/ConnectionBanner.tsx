import { Alert } from "@patternfly/react-core";
import { useEffect } from "react";
import { connection, useConnection } from "../api/connection";
import { useNow } from "../components/Ago";
import { clock } from "../components/time";
import { words } from "../words";

/** Nothing while all is current. */
export function ConnectionBanner() {
  const { phase, since, silent } = useConnection();
  const now = useNow(1_000);
  // biome-ignore lint/correctness/useExhaustiveDependencies: settles as time passes
  useEffect(() => connection.settle(), [now]);
  const text = words.shell.connection;
  if (phase === "live") return null;
  const [variant, title] =
    phase === "loggedOut"
      ? (["danger", text.loggedOut] as const)
      : phase === "stale"
        ? (["warning", text[silent].stale(clock(since ?? now))] as const)
        : (["info", text[silent].reconnecting] as const);
  return (
    <Alert component="p" isInline isPlain={false} variant={variant} title={title} role="status">
      {phase === "loggedOut"
        ? text.loggedOutHint
        : phase === "stale"
          ? text[silent].staleHint
          : null}
    </Alert>
  );
}
