/** What is around every page: masthead, navigation, the banner about the connection. */
import {
  Bullseye,
  Masthead,
  MastheadBrand,
  MastheadContent,
  MastheadMain,
  MastheadToggle,
  Page,
  PageSidebar,
  PageSidebarBody,
  PageToggleButton,
  SkipToContent,
  Spinner,
  Toolbar,
  ToolbarContent,
  ToolbarGroup,
  ToolbarItem,
} from "@patternfly/react-core";
import { Suspense } from "react";
import { Link, Outlet, useLocation } from "react-router";
import { MAIN } from "../components/menus";
import { words } from "../words";
import { ConnectionBanner } from "./ConnectionBanner";
import { ErrorBoundary } from "./ErrorBoundary";
import { NamespaceSelect } from "./NamespaceSelect";
import { Navigation } from "./Navigation";
import { paths } from "./paths";
import { ThemeMenu } from "./ThemeMenu";
import { UserName } from "./UserName";

export function Shell() {
  const { pathname } = useLocation();
  return (
    <Page
      isContentFilled
      isManagedSidebar
      mainContainerId={MAIN}
      mainAriaLabel={words.shell.main}
      masthead={<Top />}
      skipToContent={<SkipToContent href={`#${MAIN}`}>{words.shell.skip}</SkipToContent>}
      banner={<ConnectionBanner />}
      sidebar={
        <PageSidebar>
          <PageSidebarBody>
            <Navigation />
          </PageSidebarBody>
        </PageSidebar>
      }
    >
      <ErrorBoundary key={pageOf(pathname)}>
        <Suspense fallback={<Loading />}>
          <Outlet />
        </Suspense>
      </ErrorBoundary>
    </Page>
  );
}

/** Tabs of one job are one page: what was read of it stays when another tab is opened. */
function pageOf(pathname: string): string {
  return pathname.split("/").slice(0, 5).join("/");
}

function Loading() {
  return (
    <Bullseye>
      <Spinner aria-label={words.shell.loading} />
    </Bullseye>
  );
}

function Top() {
  return (
    <Masthead>
      <MastheadMain>
        <MastheadToggle>
          <PageToggleButton isHamburgerButton aria-label={words.shell.navigation} />
        </MastheadToggle>
        <MastheadBrand>
          <Link to={paths.home} className="odh-brand">
            <img src="/icon.svg" alt="" width={28} height={28} />
            <span>{words.shell.product}</span>
          </Link>
        </MastheadBrand>
      </MastheadMain>
      <MastheadContent>
        <Toolbar isStatic>
          <ToolbarContent>
            <ToolbarItem>
              <NamespaceSelect />
            </ToolbarItem>
            <ToolbarGroup align={{ default: "alignEnd" }} variant="action-group-plain">
              <ToolbarItem>
                <ThemeMenu />
              </ToolbarItem>
              <ToolbarItem>
                <UserName />
              </ToolbarItem>
            </ToolbarGroup>
          </ToolbarContent>
        </Toolbar>
      </MastheadContent>
    </Masthead>
  );
}
