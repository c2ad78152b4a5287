import { EmptyState, EmptyStateBody, PageSection } from "@patternfly/react-core";
import { SearchIcon } from "@patternfly/react-icons";
import { Link } from "react-router";
import { words } from "../words";
import { paths } from "./paths";

export function NotFound() {
  return (
    <PageSection>
      <EmptyState headingLevel="h1" titleText={words.shell.notFound} icon={SearchIcon}>
        <EmptyStateBody>
          <Link to={paths.jobs}>{words.shell.toJobs}</Link>
        </EmptyStateBody>
      </EmptyState>
    </PageSection>
  );
}
