/** Each page is loaded when it is opened. */
import { lazy } from "react";
import type { RouteObject } from "react-router";
import { NotFound } from "./NotFound";
import { Shell } from "./Shell";

const HomePage = lazy(() => import("../home/HomePage"));
const JobsPage = lazy(() => import("../jobs/JobsPage"));
const JobPage = lazy(() => import("../job/JobPage"));
const CreatePage = lazy(() => import("../create/CreatePage"));
const RuntimesPage = lazy(() => import("../runtimes/RuntimesPage"));
const QueuesPage = lazy(() => import("../queues/QueuesPage"));
const ComparePage = lazy(() => import("../compare/ComparePage"));

export const routes: RouteObject[] = [
  {
    element: <Shell />,
    children: [
      { path: "/", element: <HomePage /> },
      { path: "/jobs", element: <JobsPage /> },
      { path: "/jobs/:namespace/:kinds/:name/:tab?", element: <JobPage /> },
      { path: "/create", element: <CreatePage /> },
      { path: "/runtimes", element: <RuntimesPage /> },
      { path: "/runtimes/:namespace/:name", element: <RuntimesPage /> },
      { path: "/queues", element: <QueuesPage /> },
      { path: "/compare", element: <ComparePage /> },
      { path: "*", element: <NotFound /> },
    ],
  },
];
