/** The providers that each server has, as they call themselves; further ones are called by their ids. */
export const PROVIDERS: Record<string, string> = { anthropic: "Anthropic", openai: "OpenAI" };
export const providerName = (id: string): string => PROVIDERS[id] ?? id;
