import { Content, Flex, FlexItem, PageSection, Title } from "@patternfly/react-core";
import { type ReactNode, useEffect } from "react";
import { words } from "../words";

/** The title of a page, also in the browser's tab; `actions` stand at the end of its line. */
export function PageHeading({
  title,
  about,
  actions,
}: {
  title: string;
  about?: ReactNode;
  actions?: ReactNode;
}) {
  useEffect(() => {
    document.title = `${title} · ${words.shell.product}`;
  }, [title]);
  return (
    <PageSection hasBodyWrapper={false}>
      <Flex
        justifyContent={{ default: "justifyContentSpaceBetween" }}
        alignItems={{ default: "alignItemsCenter" }}
      >
        <FlexItem>
          <Title headingLevel="h1">{title}</Title>
          {about && <Content component="p">{about}</Content>}
        </FlexItem>
        {actions && <FlexItem>{actions}</FlexItem>}
      </Flex>
    </PageSection>
  );
}
