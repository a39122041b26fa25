/* agentcfg dashboard. Contains Preact (MIT). */
self.load=src=>new Promise((onload,onerror)=>document.head.append(Object.assign(document.createElement("script"),{src:new URL(src,import.meta.url),onload,onerror}))).then(()=>load.later);load("chunk.js");
