import type { Model } from "./types";

/** The providers as they call themselves: those that each server has, and further ones once their models are read. */
export const PROVIDERS: Record<string, string> = { anthropic: "Anthropic", openai: "OpenAI" };
export function learnProviders(models: readonly Model[] = []): void {
  for (const { provider, provider_name: name } of models) if (name) PROVIDERS[provider] = name;
}
export const providerName = (id: string): string => PROVIDERS[id] ?? id;
