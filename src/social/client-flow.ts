import type { Request, Response } from 'express'
import { Passport } from 'passport'
import OAuth2Strategy, { InternalOAuthError } from 'passport-oauth2'
import type { AuthContext } from '../context'
import { AppError, OAuthError, OAuthProviderNotConfiguredError } from '../core/errors'
import type { OAuthTokens, ProviderClient } from '../providers/provider-client'
import { codeChallengeOf } from './app-redirect/exchange-code'
import { type AttemptSecrets, secretsOf } from './attempts'
import { redirectUriOf } from './client-share'
import { withProviderErrors } from './provider-errors'
import type { Attempt } from './state-cookie'

export interface LoginHints {
  loginHint: string | null
}

/**
 * Only this file uses Passport. Our own instance and requests keep the host's `req` (user, session, `_sessionManager`) unchanged.
 * Strategies are called by name, so that Passport makes a new object with `success` and `fail` for each request. With a shared object, two
 * simultaneous requests would get each other's results.
 */
export function createClientFlow(ctx: AuthContext, clients: ReadonlyMap<string, ProviderClient>) {
  const passport = new Passport()
  const strategies = new Set<string>()

  /** Before its first use: a client that discovers its endpoints does not know them at boot. */
  async function useStrategy(key: string): Promise<void> {
    if (strategies.has(key)) return
    const client = clients.get(key)
    if (!client) throw new OAuthProviderNotConfiguredError({ details: { provider: key } })
    await client.prepare?.()
    passport.use(strategyName(key), new ProviderStrategy(ctx, key, client))
    strategies.add(key)
  }

  async function run(attempt: Attempt, query: Record<string, string>, { loginHint }: LoginHints = { loginHint: null }): Promise<Outcome> {
    await useStrategy(attempt.provider)
    return new Promise((resolve, reject) => {
      const options = { session: false, ...secretsOf(ctx, attempt), loginHint, isNewSignIn: attempt.purpose === 'reauthenticate' }
      const settle = (error: unknown, tokens?: OAuthTokens | false | null) => (tokens ? resolve({ tokens }) : reject(unwrap(error)))
      // With the query of the real request, Passport would also act on `code` and `error` at the login route.
      const request = { query, headers: {}, method: 'GET', url: '/' } as unknown as Request
      passport.authenticate(strategyName(attempt.provider), options, settle)(request, redirectsTo(resolve), reject)
    })
  }

  return {
    authorizeUrl: (attempt: Attempt, hints?: LoginHints) =>
      withProviderErrors(ctx, [attempt.provider, 'authorize'], async () => {
        const outcome = await run(attempt, {}, hints)
        if (!('url' in outcome)) throw new OAuthError()
        return clients.get(attempt.provider)?.pushAuthorizationRequest?.(outcome.url) ?? outcome.url
      }),
    async exchange(attempt: Attempt, code: string) {
      const outcome = await run(attempt, { code })
      if (!('tokens' in outcome)) throw new OAuthError()
      return outcome.tokens
    },
  }
}

type Outcome = { url: string } | { tokens: OAuthTokens }

type ExchangeCallback = (error: unknown, accessToken?: string, refreshToken?: string | null, tokens?: OAuthTokens) => void

class ProviderStrategy extends OAuth2Strategy {
  // Not `#private`: Passport works on Object.create(strategy), which has no `#private` fields.
  private readonly client: ProviderClient

  constructor(ctx: AuthContext, key: string, client: ProviderClient) {
    const callbackURL = redirectUriOf(ctx, key, client)
    const { authorizeUrl: authorizationURL, tokenUrl: tokenURL, clientId: clientID, scopes } = client
    super(
      {
        authorizationURL,
        tokenURL,
        clientID: clientID || '-',
        clientSecret: '',
        callbackURL,
        scope: [...scopes],
        scopeSeparator: ' ',
        skipUserProfile: true,
      },
      (
        _accessToken: string,
        _refreshToken: string,
        tokens: OAuthTokens,
        _profile: unknown,
        done: (error: null, user: OAuthTokens) => void,
      ) => done(null, tokens),
    )
    this.client = client
    this.exchangeThrough(client, callbackURL)
  }

  /** The package `oauth`, which the strategy would use, has no deadline and no size limit, and crashes on the response `null`. */
  private exchangeThrough(client: ProviderClient, redirectUri: string): void {
    const getOAuthAccessToken = (code: string, params: object, done: ExchangeCallback) => {
      const { code_verifier: codeVerifier, nonce } = params as { code_verifier?: string; nonce?: string } // what tokenParams returned
      const input = { code, redirectUri, ...(codeVerifier && { codeVerifier }), ...(nonce && { nonce }) }
      Promise.resolve()
        .then(() => client.exchangeCode(input))
        // The strategy rejects an empty access token, and a response can have an id_token alone. Only `tokens` are used.
        .then((tokens) => {
          const isIdTokenAlone = tokens.accessToken === '' && typeof tokens.idToken === 'string' && tokens.idToken !== ''
          done(null, isIdTokenAlone ? '-' : tokens.accessToken, tokens.refreshToken, tokens)
        })
        .catch((error: unknown) => done(error))
    }
    // passport-oauth2 documents `_oauth2` as "protected". This strategy calls no other method of it.
    Object.assign(this._oauth2, { getOAuthAccessToken })
  }

  override authorizationParams(options: AttemptSecrets & LoginHints & { isNewSignIn: boolean }): object {
    const pkce = this.client.pkce === false ? {} : { code_challenge: codeChallengeOf(options.codeVerifier), code_challenge_method: 'S256' }
    // The provider asks the person to sign in again. The id_token then has the time of the sign-in (OpenID Connect Core 3.1.2.1).
    const anew = options.isNewSignIn ? { prompt: 'login', max_age: '0' } : {}
    const hint = options.loginHint === null || this.client.loginHint !== true ? {} : { login_hint: options.loginHint }
    const byForm = this.client.responseMode === 'form_post' ? { response_mode: 'form_post' } : {}
    return { ...this.client.authorizeParams, ...pkce, ...(this.hasOpenid() && { nonce: options.nonce }), ...hint, ...anew, ...byForm }
  }

  override tokenParams(options: AttemptSecrets): object {
    const pkce = this.client.pkce === false ? {} : { code_verifier: options.codeVerifier }
    return { ...pkce, ...(this.hasOpenid() && { nonce: options.nonce }) }
  }

  private hasOpenid(): boolean {
    return this.client.scopes.includes('openid')
  }
}

/** A key named `session` would replace Passport's own strategy. */
function strategyName(key: string): string {
  return `oauth:${key}`
}

/** Only what Passport's `redirect` uses. */
function redirectsTo(resolve: (outcome: Outcome) => void): Response {
  let url = ''
  const setHeader = (name: string, value: string) => {
    if (name === 'Location') url = value
  }
  return { statusCode: 200, setHeader, end: () => resolve({ url }) } as unknown as Response
}

/** Without the wrapper of passport-oauth2. */
function unwrap(error: unknown): Error {
  const thrown: unknown = error instanceof InternalOAuthError ? error.oauthError : error
  return thrown instanceof AppError ? thrown : new OAuthError({ cause: thrown })
}
