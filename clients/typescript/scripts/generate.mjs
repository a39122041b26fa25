// Writes src/generated.ts from the OpenAPI document of the server: a type for each schema, and for each operation its method,
// path, parameters, body and answer. With --check it fails when the committed file is another.
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import prettier from "prettier";

const DOCUMENT = new URL("../../../agentcfg-server/src/api/openapi.json", import.meta.url);
const OUTPUT = new URL("../src/generated.ts", import.meta.url);

/** Schemas whose names are those of types of the language or of the package. */
const RENAMED = { Error: "ErrorBody", Parameters: "AgentParameters", Health: "ServerHealth" };

/** Paths that SDKs of the providers and MCP clients call, not this client. */
const LEFT_OUT = /^\/(api\/agents\/model-calls\/.*|mcp|openapi\.json)$/;

const document = JSON.parse(await readFile(DOCUMENT, "utf8"));

const resolve = (node) => {
  if (node.$ref === undefined) return node;
  const found = node.$ref
    .slice(2)
    .split("/")
    .reduce((part, name) => part?.[name], document);
  if (found === undefined) throw new Error(`${node.$ref} is not in the document`);
  return resolve(found);
};
const schemaName = (name) => RENAMED[name] ?? name;
const property = (name) => (/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? name : JSON.stringify(name));

function comment(text) {
  if (!text) return "";
  const words = text.replaceAll("*/", "* /").split(/\s+/);
  const lines = [""];
  for (const word of words) {
    const last = lines[lines.length - 1];
    if (last && last.length + word.length > 115) lines.push(word);
    else lines[lines.length - 1] = last ? `${last} ${word}` : word;
  }
  return lines.length === 1 ? `/** ${lines[0]} */\n` : `/**\n${lines.map((line) => ` * ${line}\n`).join("")} */\n`;
}

function objectType(schema) {
  const required = new Set(schema.required ?? []);
  const members = Object.entries(schema.properties ?? {}).map(
    ([name, member]) =>
      `${comment(member.description)}${property(name)}${required.has(name) ? "" : "?"}: ${typeOf(member)}${required.has(name) ? "" : " | undefined"};`,
  );
  const rest = schema.additionalProperties;
  if (members.length === 0) {
    if (rest === false) return "Record<string, never>";
    return `Record<string, ${typeof rest === "object" ? typeOf(rest) : "unknown"}>`;
  }
  if (rest === true) members.push("[name: string]: unknown;");
  return `{\n${members.join("\n")}\n}`;
}

function primitive(type, schema) {
  switch (type) {
    case "string":
      return "string";
    case "integer":
    case "number":
      return "number";
    case "boolean":
      return "boolean";
    case "null":
      return "null";
    case "array":
      return schema.items ? `Array<${typeOf(schema.items)}>` : "unknown[]";
    case "object":
      return objectType(schema);
    default:
      throw new Error(`a schema has the unknown type ${type}`);
  }
}

function typeOf(schema) {
  if (schema.$ref !== undefined) return schemaName(schema.$ref.split("/").at(-1));
  if (schema.enum?.join() === "false,true") return "boolean";
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  const choice = schema.anyOf ?? schema.oneOf;
  const chosen = choice?.map((option) => typeOf(option.properties ? { type: "object", ...option } : option)).join(" | ");
  if (schema.properties !== undefined && chosen !== undefined) return `${objectType(schema)} & (${chosen})`;
  if (chosen !== undefined) return `(${chosen})`;
  if (schema.type === undefined) return "unknown";
  return [schema.type]
    .flat()
    .map((type) => primitive(type, schema))
    .join(" | ");
}

function schemas() {
  return Object.entries(document.components.schemas).map(([name, schema]) => {
    const body = typeOf(schema);
    const isInterface = body.startsWith("{") && body.endsWith("}") && !schema.oneOf && !schema.anyOf;
    const head = isInterface ? `export interface ${schemaName(name)} ` : `export type ${schemaName(name)} = `;
    return `${comment(schema.description)}${head}${body}${isInterface ? "" : ";"}`;
  });
}

/** The form of an answer: an array, an object, or either as the query asks for. */
function formOf(schema) {
  const { type, anyOf } = resolve(schema);
  if (anyOf !== undefined) return new Set(anyOf.map(formOf)).size === 1 ? formOf(anyOf[0]) : "either";
  if (type !== "array" && type !== "object") throw new Error(`an answer has the type ${type}`);
  return type;
}

function operations() {
  const table = [];
  const types = [];
  for (const [path, item] of Object.entries(document.paths)) {
    if (LEFT_OUT.test(path)) continue;
    for (const [method, operation] of Object.entries(item)) {
      if (method === "parameters") continue;
      const query = (operation.parameters ?? []).map(resolve).filter((parameter) => parameter.in === "query");
      const members = query.map(
        ({ name, description, required, schema }) =>
          `${comment(description)}${name}${required ? "" : "?"}: ${typeOf(schema)}${required ? "" : " | undefined"};`,
      );
      const body = operation.requestBody ? resolve(operation.requestBody).content["application/json"] : undefined;
      const success = Object.entries(operation.responses).find(([status]) => status.startsWith("2"))?.[1];
      const [[media, answer] = []] = Object.entries(success ? (resolve(success).content ?? {}) : {});
      const form = answer === undefined ? "none" : media === "application/x-ndjson" ? "lines" : formOf(answer.schema);
      const workspace = query.find(({ name }) => name === "workspace_id");
      const takes = workspace ? (workspace.required ? "required" : "optional") : "none";
      table.push(
        `${operation.operationId}: { method: "${method.toUpperCase()}", path: "${path}", workspace: "${takes}", answer: "${form}" },`,
      );
      types.push(
        `${comment(operation.summary)}${operation.operationId}: { query: ${members.length ? `{ ${members.join("\n")} }` : "Record<never, never>"};
         body: ${body ? typeOf(body.schema) : "undefined"}; answer: ${answer ? typeOf(answer.schema) : "undefined"} };`,
      );
    }
  }
  return `/** The parameters of the query, the body and the answer of each operation. */
export interface Operations {\n${types.join("\n")}\n}

/** The method and the path of each operation, whether its query names the workspace, and the form of its answer. */
export const OPERATIONS = {\n${table.join("\n")}\n} as const satisfies Record<keyof Operations, OperationAddress>;

export interface OperationAddress {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  path: string;
  workspace: "required" | "optional" | "none";
  answer: "array" | "object" | "either" | "lines" | "none";
}`;
}

const source = `// Generated by scripts/generate.mjs from the OpenAPI document of the server. Do not edit.

${schemas().join("\n\n")}

/** The types of events that this release knows. */
export const ACTIONS: ReadonlySet<string> = new Set<Action>(${JSON.stringify(document.components.schemas.Action.enum)});

${operations()}
`;
const config = await prettier.resolveConfig(fileURLToPath(OUTPUT));
const formatted = await prettier.format(source, { ...config, parser: "typescript" });

if (process.argv.includes("--check")) {
  const committed = await readFile(OUTPUT, "utf8").catch(() => "");
  if (committed !== formatted) {
    console.error("error: src/generated.ts is not what the OpenAPI document gives; run: scripts/typescript-client.sh generate");
    process.exit(1);
  }
} else {
  await writeFile(OUTPUT, formatted);
}
