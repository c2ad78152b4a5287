/** Nothing is here yet: why, what to do here, and the same as a command. */
import {
  ClipboardCopy,
  EmptyState,
  EmptyStateActions,
  EmptyStateBody,
  EmptyStateFooter,
  type EmptyStateProps,
} from "@patternfly/react-core";
import type { ReactNode } from "react";
import { words } from "../words";

export function TeachingEmptyState({
  title,
  icon,
  children,
  command,
  action,
}: {
  title: string;
  icon?: EmptyStateProps["icon"];
  children: ReactNode;
  command?: string;
  action?: ReactNode;
}) {
  return (
    <EmptyState headingLevel="h2" titleText={title} icon={icon}>
      <EmptyStateBody>{children}</EmptyStateBody>
      <EmptyStateFooter>
        {action && <EmptyStateActions>{action}</EmptyStateActions>}
        {command && <CopyCommand command={command} />}
      </EmptyStateFooter>
    </EmptyState>
  );
}

export function CopyCommand({ command }: { command: string }) {
  return (
    <ClipboardCopy
      isReadOnly
      isCode
      hoverTip={words.shell.copy}
      clickTip={words.shell.copied}
      textAriaLabel={words.shell.command}
      toggleAriaLabel={words.shell.command}
    >
      {command}
    </ClipboardCopy>
  );
}
