// The pages besides the one of the tools, in the order in which they are listed. To add one for administrators, write it into the folder admin, and
// its line here.

import { Audit } from "./admin/audit.js";
import { Callers } from "./admin/callers.js";
import { Configuration } from "./admin/configuration.js";
import { Explain } from "./admin/explain.js";
import { Files } from "./admin/files.js";
import { Events, Log } from "./admin/happenings.js";
import { Limits } from "./admin/limits.js";
import { Reach } from "./admin/reach.js";
import { Refused } from "./admin/refused.js";
import { Slow } from "./admin/slow.js";
import { Switches } from "./admin/switches.js";
import { Tokens } from "./admin/tokens.js";
import { Versions } from "./admin/versions.js";
import { Connect } from "./connect.js";
import { mayChange, mayLook } from "./session.js";
import { You } from "./you.js";

/** @typedef {{name: string, title: string, may: (self: import("./session.js").Self|null) => boolean, needsMCP?: boolean, view: any}} Page needsMCP is whether it says nothing where the server doesn't speak MCP */

/** @type {Page[]} */
export const pages = [
  { name: "connect", title: "Connect", may: () => true, needsMCP: true, view: Connect },
  { name: "you", title: "You", may: (self) => self !== null, view: You },
  { name: "switches", title: "Switches", may: mayLook, view: Switches },
  { name: "tokens", title: "Tokens", may: mayLook, view: Tokens },
  { name: "callers", title: "Callers", may: mayLook, view: Callers },
  { name: "explain", title: "Explain", may: mayLook, view: Explain },
  { name: "files", title: "Files", may: mayLook, view: Files },
  { name: "refused", title: "Refused", may: mayLook, view: Refused },
  { name: "versions", title: "Versions", may: mayLook, view: Versions },
  { name: "limits", title: "Limits", may: mayLook, view: Limits },
  { name: "slow", title: "Slow", may: mayLook, view: Slow },
  { name: "audit", title: "Audit", may: mayLook, view: Audit },
  { name: "events", title: "Events", may: mayLook, view: Events },
  { name: "log", title: "Log", may: mayLook, view: Log },
  { name: "configuration", title: "Configuration", may: mayChange, view: Configuration },
  { name: "reach", title: "Reach", may: mayLook, view: Reach },
];
