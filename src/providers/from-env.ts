import { ConfigurationError } from '../core/errors'
import { createHttpClient, type HttpClient } from '../core/http-client'
import type { OAuthClientOptions } from './client-options'
import { GitHubClient } from './github'
import { GoogleClient } from './google'
import type { ProviderClient } from './provider-client'

type Environment = Record<string, string | undefined>

/**
 * Returns the built-in clients: `google` if `OAUTH_GOOGLE_CLIENT_ID` is set, `github` if `OAUTH_GITHUB_CLIENT_ID` is set. The clients share
 * one HTTP client. Only the host calls this function: the library never reads the environment by itself.
 *
 * @throws ConfigurationError for a malformed variable; the message does not repeat the value
 */
export function providersFromEnv(env: Environment = process.env, shared: { httpClient?: HttpClient } = {}): Record<string, ProviderClient> {
  const httpClient = shared.httpClient ?? createHttpClient()
  const google = optionsFromEnv(env, 'GOOGLE')
  const github = optionsFromEnv(env, 'GITHUB')
  return {
    ...(google ? { google: new GoogleClient({ ...google, httpClient }) } : {}),
    ...(github ? { github: new GitHubClient({ ...github, httpClient }) } : {}),
  }
}

/** Returns the provider's options. Null: the provider has no client id. An empty variable counts as unset. */
function optionsFromEnv(env: Environment, provider: string): OAuthClientOptions | null {
  const clientId = env[`OAUTH_${provider}_CLIENT_ID`] ?? ''
  if (clientId === '') return null
  return {
    clientId,
    clientSecret: env[`OAUTH_${provider}_CLIENT_SECRET`] ?? '',
    extraAudiences: readList(env, `OAUTH_${provider}_EXTRA_AUDIENCES`),
  }
}

function readList(env: Environment, variable: string): string[] {
  const list = parseOrNull(env[variable] || '[]')
  if (Array.isArray(list) && list.every((item) => typeof item === 'string' && item !== '')) return list
  throw new ConfigurationError(`${variable} must be a JSON list of non-empty strings, for example ["ios-client-id"].`)
}

function parseOrNull(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null // the parser's message would repeat the value
  }
}
