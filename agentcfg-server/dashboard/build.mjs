// Builds dist/: index.html, app.js, chunk.js, later.js, app.css, icon.svg, snippets.json, and a .gz of each.
//   node build.mjs           writes dist/
//   node build.mjs --check   fails when the files in dist/ are not what the sources give
//   node build.mjs --watch   writes dist/ after each change
//   node build.mjs --arrange looks for a better order of the functions, for some minutes
import zopfli from "@gfx/zopfli";
import { build, context } from "esbuild";
import { mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { gunzipSync, gzipSync } from "node:zlib";
import { minify } from "terser";
import { arrange, search } from "./arrange.mjs";
import { shorten } from "./elements.mjs";
import { lean } from "./lean.mjs";
import { FIRST, LIMITS, SCRIPTS } from "./limits.mjs";
import { mangleProps, noneIsText } from "./names.mjs";
import { snippets } from "./snippets.mjs";

const here = new URL("./", import.meta.url);
const dist = new URL("dist/", here);
const mode = process.argv[2];

const common = {
  absWorkingDir: here.pathname,
  bundle: true,
  write: false,
  // Names are shortened after it, so that both files call the same thing by the same name.
  minifySyntax: true,
  minifyWhitespace: true,
  format: "esm",
  target: "es2023",
  charset: "utf8",
  legalComments: "none",
  logLevel: "warning",
};

const options = {
  ...common,
  entryPoints: { app: "src/main.tsx" },
  outdir: "dist",
  // The first screen is in chunk.js, which app.js starts; later.js has the others, and is named by the file that it begins with.
  splitting: true,
  mangleProps,
  chunkNames: "[name]",
  // Calls of h() are smaller than those of the automatic runtime; tsconfig.json would set that one.
  jsx: "transform",
  jsxFactory: "h",
  jsxFragment: "Fragment",
  inject: ["src/jsx.ts"],
  tsconfigRaw: {},
  alias: { "preact/hooks": "./src/base/hooks.ts" },
  plugins: [
    {
      name: "lean",
      setup: ({ onLoad }) =>
        onLoad({ filter: /preact\/dist\/preact\.mjs$/ }, async ({ path }) => ({ contents: lean(await readFile(path, "utf8")) })),
    },
  ],
};

const NOTICE = "/* agentcfg dashboard. Contains Preact (MIT). */";

/** Joins the lines of the page and removes the white space between tags. */
const squeeze = (text) =>
  text
    .replace(/>\s+</g, "><")
    .replace(/\s*\n\s*/g, " ")
    .trim() + "\n";

const watching = mode === "--watch";

/** Terser after esbuild saves 3 % of what is sent; it is slow, and left out while the sources change. */
async function small(script, nameCache) {
  const { code } = await minify(script, {
    nameCache,
    module: true,
    ecma: 2020,
    compress: { passes: 3, unsafe: true, unsafe_math: true, unsafe_arrows: true },
    mangle: { reserved: ["top"] },
    format: { comments: false },
  });
  return code;
}

/**
 * Puts the start of the page into the file of what the scripts share, which is smaller than both: app.js then has nothing but
 * the name of the other one.
 */
async function join(scripts) {
  const own = {
    name: "own",
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^\.\/later\.js$/ }, ({ path }) => ({ path, external: true }));
      onResolve({ filter: /\.js$/ }, ({ path }) => ({ path: path.split("/").at(-1), namespace: "own" }));
      onLoad({ filter: /.*/, namespace: "own" }, ({ path }) => ({ contents: scripts.get(path) }));
    },
  };
  const stdin = { contents: 'import "./app.js"; export * from "./chunk.js";' };
  const { outputFiles } = await build({ ...common, stdin, plugins: [own] });
  scripts.set("chunk.js", outputFiles[0].text);
  scripts.set("app.js", LOADER);
}

/**
 * Makes plain scripts of the two modules. What a plain script declares is known to those after it: a list of what one exports
 * and one of what the other imports would be 1 % of all that is sent. What the second declares stays within it.
 */
function share(scripts) {
  const names = new Map();
  const pairs = (list) => list.split(",").map((pair) => pair.split(" as "));
  const first = scripts.get("chunk.js").replace(/export\{([^}]*)\};?\s*$/, (_, list) => {
    for (const [own, alias = own] of pairs(list)) names.set(alias, own);
    return "";
  });
  if (!names.size) throw new Error("chunk.js: its exports were not found");
  const [start, ...more] = first.split('import("./later.js")');
  if (more.length !== 1) throw new Error("chunk.js: the place where it loads later.js was not found");
  scripts.set("chunk.js", `"use strict";${start}load("later.js")${more[0]}`);

  const renamed = [];
  const replaced = (text, what, by) => {
    if (!what.test(text)) throw new Error(`later.js: not found: ${what}`);
    return text.replace(what, by);
  };
  const body = replaced(scripts.get("later.js"), /^import\{([^}]*)\}from"\.\/chunk\.js";?/, (_, list) => {
    for (const [alias, own = alias] of pairs(list)) if (names.get(alias) !== own) renamed.push(`${own}=${names.get(alias)}`);
    return "";
  });
  const second = replaced(
    body,
    /export\{([^}]*)\};?\s*$/,
    (_, list) => `return{${pairs(list).map(([own, alias = own]) => `${alias}:${own}`)}}`,
  );
  scripts.set("later.js", `"use strict";load.later=(()=>{${renamed.length ? `var ${renamed};` : ""}${second}})();`);
}

/** Loads a plain script, and gives what it leaves. It is in app.js, the only module, which the page names. */
const LOADER = `self.load=src=>new Promise((onload,onerror)=>document.head.append(Object.assign(document.createElement("script"),{src:new URL(src,import.meta.url),onload,onerror}))).then(()=>load.later);load("chunk.js");
`;

/** The smallest gzip file that any reader takes; its bytes depend on nothing but the content. */
async function pack(content) {
  const packed = Buffer.from(
    watching ? gzipSync(content, { level: 9 }) : await zopfli.gzipAsync(content, { numiterations: 200 }),
  );
  packed.writeUInt32LE(0, 4); // no time
  packed[9] = 255; // no operating system
  return packed;
}

async function files(bundle) {
  const made = new Map();
  const scripts = new Map();
  for (const { path, text } of bundle.outputFiles) {
    const name = path.split("/").at(-1);
    if (name.endsWith(".js")) scripts.set(name, text);
    else made.set(name, Buffer.from(text));
  }
  noneIsText([...scripts.values()]);
  if (!watching) {
    await join(scripts);
    shorten(scripts);
    const names = {};
    const minified = ["chunk.js", "later.js"];
    for (const name of minified) scripts.set(name, await small(scripts.get(name), names));
    const { props } = names.vars;
    minified.forEach((name, part) => scripts.set(name, arrange(scripts.get(name), props, part)));
    if (mode === "--arrange")
      await search(
        minified.map((name) => scripts.get(name)),
        props,
        (content) => zopfli.gzipAsync(content, { numiterations: 5 }),
      );
    share(scripts);
  }
  scripts.set("app.js", `${NOTICE}\n${scripts.get("app.js")}`);
  for (const [name, text] of scripts) made.set(name, Buffer.from(text));
  for (const name of ["index.html", "icon.svg"]) {
    made.set(name, Buffer.from(squeeze(await readFile(new URL(`src/${name}`, here), "utf8"))));
  }
  const texts = JSON.parse(await readFile(new URL("src/texts.json", here), "utf8"));
  const page = await readFile(new URL("../../docs/model-calls.md", here), "utf8");
  made.set("snippets.json", Buffer.from(`${JSON.stringify({ ...texts, code: snippets(page) })}\n`));
  return made;
}

async function write(made) {
  await mkdir(dist, { recursive: true });
  const sizes = {};
  for (const [name, content] of made) {
    const packed = await pack(content);
    await writeFile(new URL(name, dist), content);
    await writeFile(new URL(`${name}.gz`, dist), packed);
    sizes[name] = packed.length;
    console.log(`${name.padEnd(13)} ${String(content.length).padStart(7)} bytes, ${String(packed.length).padStart(6)} gzip`);
  }
  const sums = { first: FIRST, scripts: SCRIPTS, "app.css": ["app.css"] };
  for (const [what, limit] of Object.entries(LIMITS)) {
    const sum = sums[what].reduce((bytes, name) => bytes + sizes[name], 0);
    console.log(`${what.padEnd(13)} ${String(sum).padStart(6)} of ${limit}`);
    if (sum <= limit) continue;
    console.error(`error: ${what}: more than ${limit} bytes`);
    if (!watching) process.exit(1);
  }
}

/** Compares contents: the compressed bytes depend on the version of zlib. */
async function check(made) {
  const wrong = [];
  for (const [name, content] of made) {
    const plain = await readFile(new URL(name, dist)).catch(() => null);
    const packed = await readFile(new URL(`${name}.gz`, dist)).catch(() => null);
    if (!plain?.equals(content)) wrong.push(name);
    if (!packed || !gunzipSync(packed).equals(content)) wrong.push(`${name}.gz`);
  }
  for (const name of await readdir(dist)) if (!made.has(name.replace(/\.gz$/, ""))) wrong.push(name);
  if (wrong.length) {
    console.error(`error: dist/ is not what the sources give: ${wrong.join(", ")}; run npm run build`);
    process.exit(1);
  }
  console.log("dist/ is what the sources give");
}

if (watching) {
  const onEnd = (bundle) => bundle.errors.length || files(bundle).then(write);
  const watcher = await context({ ...options, plugins: [...options.plugins, { name: "write", setup: (b) => b.onEnd(onEnd) }] });
  await watcher.watch();
} else {
  const made = await files(await build(options));
  await (mode === "--check" ? check(made) : write(made));
}
