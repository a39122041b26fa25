/* agentcfg dashboard. Contains Preact (MIT). */
import"./chunk.js";
