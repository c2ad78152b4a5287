/**
 * Every text that a person reads, in one place; one file for each folder of pages. Texts with
 * values are functions. Another language is another folder with the same shape.
 */
import { compare } from "./en/compare";
import { create } from "./en/create";
import { home } from "./en/home";
import { job } from "./en/job";
import { jobs } from "./en/jobs";
import { logs } from "./en/logs";
import { queues } from "./en/queues";
import { runtimes } from "./en/runtimes";
import { problems, shell, states } from "./en/shell";

export const words = {
  shell,
  states,
  problems,
  home,
  jobs,
  job,
  logs,
  create,
  runtimes,
  queues,
  compare,
};
