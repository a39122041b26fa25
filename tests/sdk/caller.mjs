// Calls through the official SDKs, for tests/model_calls/sdk.rs. The argument selects the part to run.
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

const calls = `${process.env.AGENTCFG_URL}/api/agents/model-calls`;
const credential = process.env.AGENTCFG_API_KEY;
const clients = (writer, poet = writer, bearer = credential) => ({
    openai: new OpenAI({
        baseURL: `${calls}/openai/v1`, apiKey: bearer, defaultQuery: { agent_id: writer }, maxRetries: 0,
    }),
    anthropic: new Anthropic({
        baseURL: `${calls}/anthropic`, authToken: bearer, apiKey: null, defaultQuery: { agent_id: poet }, maxRetries: 0,
    }),
});
const { openai, anthropic } = clients("writer", "poet");

const messages = [{ role: "user", content: "Draft the notes." }];
const say = (value) => console.log(JSON.stringify(value));

const chatPieces = async function* (options) {
    for await (const chunk of await openai.chat.completions.create({ messages, stream: true }, options)) {
        const word = chunk.choices[0].delta.content;
        if (word) yield { word, model: chunk.model };
    }
};
const messagePieces = async function* (options) {
    let model;
    for await (const event of await anthropic.messages.create({ max_tokens: 9, messages, stream: true }, options)) {
        if (event.type === "message_start") model = event.message.model;
        if (event.type === "content_block_delta") yield { word: event.delta.text, model };
    }
};
const responsePieces = async function* () {
    let model;
    for await (const event of await openai.responses.create({ input: "Draft the notes.", stream: true })) {
        if (event.type === "response.created") model = event.response.model;
        if (event.type === "response.output_text.delta") yield { word: event.delta, model };
    }
};

const together = async (pieces) => {
    const all = [];
    for await (const piece of pieces) all.push(piece);
    const words = all.map((piece) => piece.word);
    say({ text: words.join(""), pieces: words, model: all[0].model });
};
const slowly = async (pieces) => {
    for await (const piece of pieces) say(piece.word);
    console.log("done");
};
const abort = async (pieces) => {
    const controller = new AbortController();
    for await (const _ of pieces({ signal: controller.signal })) {
        controller.abort();
        console.log("aborted");
        break;
    }
    await new Promise((resolve) => setTimeout(resolve, 60_000));
};
const cut = async (pieces) => {
    try {
        for await (const _ of pieces);
        console.log("ended as if it were whole");
    } catch {
        console.log("failed");
    }
};

const fault = async (calling) => {
    try {
        await calling;
    } catch (error) {
        return error;
    }
    return new Error("no error");
};
const brief = (error) => ({ name: error.constructor.name, status: error.status });

const parts = {
    chat: async () => {
        const answer = await openai.chat.completions.create({ messages });
        say({ text: answer.choices[0].message.content, model: answer.model });
    },
    responses: async () => {
        const answer = await openai.responses.create({ input: "Draft the notes." });
        say({ text: answer.output_text, model: answer.model });
    },
    messages: async () => {
        const answer = await anthropic.messages.create({ max_tokens: 9, messages });
        say({ text: answer.content[0].text, model: answer.model });
    },
    "chat-stream": () => together(chatPieces()),
    "responses-stream": () => together(responsePieces()),
    "messages-stream": () => together(messagePieces()),
    "chat-slowly": () => slowly(chatPieces()),
    "messages-slowly": () => slowly(messagePieces()),
    "chat-abort": () => abort(chatPieces),
    "messages-abort": () => abort(messagePieces),
    "chat-cut": () => cut(chatPieces()),
    "messages-cut": () => cut(messagePieces()),
    errors: async () => {
        const limited = await fault(openai.chat.completions.create({ messages }));
        const soon = await fault(openai.chat.completions.create({ model: "gpt-7", messages }));
        const nobody = await fault(clients("nobody").openai.chat.completions.create({ messages }));
        const stranger = await fault(clients("writer", "poet", "svc_live_x").openai.responses.create({ input: "x" }));
        const unreachable = await fault(anthropic.messages.create({ max_tokens: 9, messages }));
        say({
            limited: {
                ...brief(limited),
                code: limited.code,
                after: limited.headers.get("retry-after"),
                id: limited.headers.get("x-provider-request-id"),
            },
            soon: { ...brief(soon), names_model: soon.message.includes("gpt-7") },
            nobody: brief(nobody),
            stranger: brief(stranger),
            unreachable: brief(unreachable),
        });
    },
    others: async () => {
        const embeddings = await openai.embeddings.create({
            model: "text-embedding-3-small", input: "x", encoding_format: "float",
        });
        const file = await openai.files.create({
            file: new File(['{"a":1}'], "a.jsonl"), purpose: "batch",
        });
        say({ embedding: embeddings.data[0].embedding, file: file.id });
    },
};

await parts[process.argv[2]]();
