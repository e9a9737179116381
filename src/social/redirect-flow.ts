import type { AuthContext } from '../context'
import { isPassportProvider, type PassportProvider } from '../providers/passport-provider'
import type { OAuthTokens, ProviderClient } from '../providers/provider-client'
import { secretsOf } from './attempts'
import type { LoginHints } from './client-flow'
import { redirectUriOf } from './client-share'
import { withProviderErrors } from './provider-errors'
import type { Attempt } from './state-cookie'
import { createStrategyFlow } from './strategy-flow'

export interface RedirectFlow {
  /** @throws OAuthProviderUnavailableError if the flow must call the provider first, and the provider does not respond */
  authorizeUrl(attempt: Attempt, hints?: LoginHints): Promise<string>
  /** @throws OAuthError when the provider refuses or its response cannot be used */
  exchange(attempt: Attempt, code: string): Promise<OAuthTokens>
}

/** Passport is loaded at the first login by a provider client, so that a host without one never loads it. */
export function createRedirectFlow(ctx: AuthContext): RedirectFlow {
  const clients = new Map<string, ProviderClient>()
  const flows = new Map<string, RedirectFlow>()
  for (const [key, provider] of ctx.providers) {
    if (isPassportProvider(provider)) flows.set(key, flowOfStrategy(ctx, key, provider))
    else clients.set(key, provider)
  }
  let ofClients: RedirectFlow | undefined
  async function flowOfClients(): Promise<RedirectFlow> {
    if (ofClients) return ofClients
    const { createClientFlow } = await import('./client-flow.js') // if this fails, the next login tries again
    ofClients ??= createClientFlow(ctx, clients)
    return ofClients
  }
  const flowOf = async ({ provider }: Attempt) => flows.get(provider) ?? flowOfClients()
  return {
    authorizeUrl: async (attempt, hints) => (await flowOf(attempt)).authorizeUrl(attempt, hints),
    exchange: async (attempt, code) => (await flowOf(attempt)).exchange(attempt, code),
  }
}

function flowOfStrategy(ctx: AuthContext, key: string, provider: PassportProvider): RedirectFlow {
  const flow = createStrategyFlow(key, provider, redirectUriOf(ctx, key, provider))
  return {
    authorizeUrl: (attempt) => withProviderErrors(ctx, [key, 'callback'], async () => flow.authorizeUrl(secretsOf(ctx, attempt))),
    exchange: (attempt, code) => flow.exchange(secretsOf(ctx, attempt), code),
  }
}
