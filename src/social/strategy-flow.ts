import { isAbsoluteAddress } from '../core/config/web-address'
import { AppError, ConfigurationError, OAuthError } from '../core/errors'
import type { PassportProvider, PassportStateStore, PassportStrategy } from '../providers/passport-provider'
import type { OAuthTokens } from '../providers/provider-client'
import { ProviderSaidNo } from '../providers/provider-refusal'
import { codeChallengeOf } from './app-redirect/exchange-code'
import type { AttemptSecrets } from './attempts'

export interface StrategyFlow {
  /** @throws OAuthError if the strategy does not redirect */
  authorizeUrl(secrets: AttemptSecrets): string
  /** Never settles if the strategy never settles. @throws OAuthError if the strategy refuses */
  exchange(secrets: AttemptSecrets, code: string): Promise<OAuthTokens>
}

/**
 * On requests of our own, so that the host's `req` stays unchanged. The strategy gets `state` and the verifier from our store. The
 * challenge of its own verifier is replaced by that of ours, which is derived from the state cookie.
 * @throws ConfigurationError if a test redirect of the strategy does not have our `state` and `redirect_uri`
 */
export function createStrategyFlow(key: string, provider: PassportProvider, redirectUri: string): StrategyFlow {
  const secretsOf = new WeakMap<object, AttemptSecrets>()
  let usesPkce = false
  const store = {
    // passport-oauth2 counts the parameters of this function to decide which arguments it passes.
    store(request: object, _verifier: unknown, _state: unknown, _meta: unknown, done: (error: null, state?: string) => void) {
      done(null, secretsOf.get(request)?.state)
    },
    verify(request: object, _state: unknown, _meta: unknown, done: (error: null, verifier: string | boolean) => void) {
      done(null, usesPkce ? (secretsOf.get(request)?.codeVerifier ?? false) : secretsOf.has(request))
    },
  }
  const strategy = makeStrategy(key, provider, redirectUri, store)

  function begin(secrets: AttemptSecrets, query: Record<string, string>, actions: Actions): void {
    const request = { query, headers: {}, method: 'GET', url: '/' }
    secretsOf.set(request, secrets)
    // On a new object, as Passport does, so that the actions belong to one request only.
    const own = Object.assign(Object.create(strategy), { ...actions, pass: actions.fail })
    own.authenticate(request, { session: false })
  }

  function redirect(secrets: AttemptSecrets): string | null {
    let location: string | null = null
    const ignore = () => undefined
    begin(secrets, {}, { success: ignore, fail: ignore, error: ignore, redirect: (url) => (location = String(url)) })
    return location
  }

  const dry: AttemptSecrets = { state: 'state-of-a-dry-run', codeVerifier: 'v'.repeat(43), nonce: '' }
  usesPkce = checkRedirect(key, strategy, { location: tryTo(() => redirect(dry)), state: dry.state, redirectUri })

  return {
    authorizeUrl(secrets) {
      const location = refusing(() => redirect(secrets))
      if (location === null) throw new OAuthError()
      return usesPkce ? withChallenge(location, codeChallengeOf(secrets.codeVerifier)) : location
    },
    exchange: (secrets, code) =>
      new Promise<OAuthTokens>((resolve, reject) => {
        const error = (thrown: unknown) => reject(refusalOf(thrown))
        const fail = () => error(undefined)
        refusing(() => begin(secrets, { code }, { success: resolve, fail, error, redirect: fail }))
      }),
  }
}

interface Actions {
  success(tokens: OAuthTokens): void
  fail(): void
  error(thrown: unknown): void
  redirect(url: unknown): void
}

function makeStrategy(key: string, provider: PassportProvider, callbackURL: string, store: PassportStateStore): PassportStrategy {
  let strategy: unknown
  try {
    strategy = provider.strategy({ callbackURL, store })
  } catch (cause) {
    throw new ConfigurationError(
      `Provider ${key}: the function given to passportProvider threw an error, which is the cause of this one.`,
      { cause },
    )
  }
  if (typeof Object(strategy).authenticate === 'function') return strategy as PassportStrategy // just checked
  throw new ConfigurationError(`Provider ${key}: the function given to passportProvider must return the strategy it makes.`)
}

/** Without our state, this browser would accept another browser's response. @returns true: the strategy sends a PKCE challenge */
function checkRedirect(
  key: string,
  { name }: PassportStrategy,
  { location, state, redirectUri }: { location: string | null; state: string; redirectUri: string },
): boolean {
  const strategy = `Provider ${key}: the Passport strategy ${JSON.stringify(String(name ?? 'without a name').slice(0, 64))}`
  const hint =
    'passportProvider needs a strategy that extends passport-oauth2. Give the constructor all of `base`, after your own options: new Strategy({ clientID, …, ...base }, base.verify). See docs/providers/passport.md.'
  if (location === null || !URL.canParse(location) || !isAbsoluteAddress(location))
    throw new ConfigurationError(`${strategy} does not redirect to an https address (http on loopback only) at once. ${hint}`)
  const query = new URL(location).searchParams
  const isOurs = (parameter: string, value: string) => query.getAll(parameter).join(' ') === value
  if (!isOurs('state', state)) throw new ConfigurationError(`${strategy} does not send the state that it got. ${hint}`)
  if (!isOurs('redirect_uri', redirectUri))
    throw new ConfigurationError(`${strategy} does not send ${redirectUri} as redirect_uri. ${hint}`)
  return query.has('code_challenge')
}

function tryTo<Result>(call: () => Result): Result | null {
  try {
    return call()
  } catch {
    return null // the caller makes the error
  }
}

/** Keeps the rest of the URL byte for byte, because providers read blanks differently. */
function withChallenge(location: string, challenge: string): string {
  return location.replace(/([?&]code_challenge=)[^&#]*/, `$1${challenge}`).replace(/([?&]code_challenge_method=)[^&#]*/, '$1S256')
}

function refusing<Result>(call: () => Result): Result {
  try {
    return call()
  } catch (thrown) {
    throw refusalOf(thrown)
  }
}

/** Recognizes errors by their properties: a strategy can have its own copy of passport-oauth2. Leaves out the provider's text. */
function refusalOf(thrown: unknown): AppError {
  if (thrown instanceof AppError) return thrown
  const { name, code, oauthError } = Object(thrown)
  const { statusCode } = Object(oauthError)
  const isSaid = name === 'TokenError' || name === 'AuthorizationError'
  const cause = isSaid ? new ProviderSaidNo(code, { status: null, isCredentialStatus: false }) : thrown
  return new OAuthError({ details: { status: Number.isInteger(statusCode) ? statusCode : null, body: null }, cause })
}
