import { Nav, NavItem, NavList } from "@patternfly/react-core";
import { Link, useLocation } from "react-router";
import { words } from "../words";
import { paths } from "./paths";

const ITEMS = [
  [paths.home, words.shell.nav.home],
  [paths.jobs, words.shell.nav.jobs],
  [paths.create, words.shell.nav.create],
  [paths.runtimes, words.shell.nav.runtimes],
  [paths.queues, words.shell.nav.queues],
  [paths.compare, words.shell.nav.compare],
] as const;

export function Navigation() {
  const { pathname } = useLocation();
  return (
    <Nav aria-label={words.shell.pages}>
      <NavList>
        {ITEMS.map(([path, label]) => {
          const active = path === "/" ? pathname === "/" : pathname.startsWith(path);
          return (
            <NavItem key={path} isActive={active} itemId={path}>
              <Link to={path} aria-current={active ? "page" : undefined}>
                {label}
              </Link>
            </NavItem>
          );
        })}
      </NavList>
    </Nav>
  );
}
