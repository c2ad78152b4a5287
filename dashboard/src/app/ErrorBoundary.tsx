/** A fault in one page leaves the others usable. Keyed by the address, so another page starts anew. */
import { Alert, Button, PageSection } from "@patternfly/react-core";
import { Component, type ReactNode } from "react";
import { words } from "../words";

export class ErrorBoundary extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  override render() {
    if (!this.state.error) return this.props.children;
    return (
      <PageSection>
        <Alert
          component="p"
          isInline
          variant="danger"
          title={words.shell.fault}
          actionLinks={
            <Button variant="link" isInline onClick={() => window.location.reload()}>
              {words.shell.reload}
            </Button>
          }
        >
          {this.state.error.message}
        </Alert>
      </PageSection>
    );
  }
}
