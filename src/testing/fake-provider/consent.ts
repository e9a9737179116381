import type { Authorization, FakeProfile, FakeProvider } from './fake-provider'

export function sayYes(provider: FakeProvider, url: string, profile: FakeProfile | undefined): Authorization {
  const params = authorizeParams(provider, url)
  const code = provider.issueCode({
    ...(profile ? { profile } : {}),
    redirectUri: params.get('redirect_uri') ?? '',
    scope: params.get('scope') ?? '',
    ...optional('codeChallenge', params.get('code_challenge')),
    ...optional('nonce', params.get('nonce')),
  })
  const user = nameOnce(provider, params, profile)
  return record(provider, params, code, { code, ...optional('user', user) })
}

/** The people who consented before, for each provider. */
const known = new WeakMap<FakeProvider, Set<unknown>>()

/** Returns the field `user`, which Apple posts unsigned and only with a person's first consent. Null: the response has no such field. */
function nameOnce(provider: FakeProvider, params: URLSearchParams, profile: FakeProfile | undefined): string | null {
  const scopes = (params.get('scope') ?? '').split(' ')
  if (!isForm(params) || !scopes.includes('name')) return null
  const { sub, name, email } = { ...provider.profile, ...profile }
  const before = known.get(provider) ?? new Set()
  known.set(provider, before)
  if (before.has(sub) || typeof name !== 'string') return null
  before.add(sub)
  const [firstName, ...others] = name.split(' ')
  return JSON.stringify({ name: { firstName, lastName: others.join(' ') }, ...(scopes.includes('email') && { email }) })
}

function isForm(params: URLSearchParams): boolean {
  return params.get('response_mode') === 'form_post'
}

export function sayNo(provider: FakeProvider, url: string, error: string): Authorization {
  return record(provider, authorizeParams(provider, url), '', { error })
}

function authorizeParams(provider: FakeProvider, url: string): URLSearchParams {
  const parsed = new URL(url)
  if (parsed.origin + parsed.pathname !== provider.authorizeUrl) throw new Error(`not this provider's authorize URL: ${url}`)
  return parsed.searchParams
}

function optional<Name extends string>(name: Name, value: string | null): { [Key in Name]?: string } {
  return (value === null ? {} : { [name]: value }) as { [Key in Name]?: string } // a computed key widens to string
}

function record(provider: FakeProvider, params: URLSearchParams, code: string, outcome: Record<string, string>): Authorization {
  const state = params.get('state') ?? ''
  const answer = { ...outcome, state }
  const callbackForm = isForm(params) ? answer : null
  const callbackQuery: Record<string, string> = callbackForm ? {} : answer
  const callback = new URL(params.get('redirect_uri') ?? '')
  for (const [name, value] of Object.entries(callbackQuery)) callback.searchParams.set(name, value)
  const authorization = { params, code, state, callbackUrl: callback.href, callbackQuery, callbackForm }
  provider.authorizations.push(authorization)
  return authorization
}
