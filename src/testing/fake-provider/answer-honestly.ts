import { appleTeam } from './client-options'
import type { FakeEndpoint, FakeHandler, FakeProfile, FakeProvider, FakeRequest } from './fake-provider'
import { accessTokenClaims, appleKeys, challengeOf, claimsSignedBy, type FakeGrant, type Ledger, signingKeys, tokensFor } from './tokens'

export function answerHonestly(request: FakeRequest, provider: FakeProvider, ledger: Ledger): FakeHandler {
  return endpoints[request.endpoint](request, provider, ledger)
}

type Endpoint = (request: FakeRequest, provider: FakeProvider, ledger: Ledger) => FakeHandler

const endpoints: Record<FakeEndpoint, Endpoint> = {
  authorize,
  token,
  userinfo: (request, provider, ledger) => whenAuthorized(request, ledger, (grant) => ({ ...provider.profile, ...grant.profile })),
  user: (request, provider, ledger) => whenAuthorized(request, ledger, (grant) => ({ ...provider.githubProfile, ...grant.profile })),
  jwks,
  discovery,
  introspect,
  tokeninfo,
  application,
  elsewhere: () => answer(404, { error: 'not_found' }),
}

function authorize({ url }: FakeRequest, provider: FakeProvider): FakeHandler {
  const params = new URL(url, provider.issuer).searchParams
  const isOurs = params.get('client_id') === provider.clientId && URL.canParse(params.get('redirect_uri') ?? '')
  if (!isOurs) return answer(400, { error: 'invalid_request' })
  const { callbackUrl, callbackForm } = provider.authorize(`${provider.issuer}${url}`)
  return callbackForm ? answer(200, formPage(callbackUrl, callbackForm)) : answer(302, '', { location: callbackUrl })
}

/** The browser sends the form at once (OAuth 2.0 Form Post Response Mode, appendix A). */
function formPage(action: string, fields: Record<string, string>): string {
  const attribute = (value: string) => value.replace(/[&"<>]/g, (letter) => `&#${letter.charCodeAt(0)};`)
  const inputs = Object.entries(fields).map(([name, value]) => `<input type="hidden" name="${name}" value="${attribute(value)}">`)
  const form = `<form method="post" action="${attribute(action)}">${inputs.join('')}<button>Continue</button></form>`
  return `<!doctype html><title>Fake provider</title>${form}<script>document.forms[0].submit()</script>`
}

function token(request: FakeRequest, provider: FakeProvider, ledger: Ledger): FakeHandler {
  const refusal = refusalOf(request, provider, ledger)
  if (refusal) return answer(refusal === 'invalid_client' ? 401 : 400, { error: refusal })
  const grant = ledger.codes.get(request.form.get('code') ?? '')
  if (!grant) return answer(400, { error: 'invalid_grant' })
  grant.used = true
  return answer(200, tokensFor(provider, ledger, grant))
}

function refusalOf(request: FakeRequest, provider: FakeProvider, ledger: Ledger): string | null {
  const { form } = request
  if (!isOurClient(request, provider) && !isOurTeam(request, provider, ledger)) return 'invalid_client'
  if (form.get('grant_type') !== 'authorization_code') return 'unsupported_grant_type'
  const grant = ledger.codes.get(form.get('code') ?? '')
  if (!grant || grant.used) return 'invalid_grant'
  if (grant.redirectUri !== undefined && grant.redirectUri !== form.get('redirect_uri')) return 'invalid_grant'
  if (grant.codeChallenge !== undefined && grant.codeChallenge !== challengeOf(form.get('code_verifier') ?? '')) return 'invalid_grant'
  return null
}

function isOurClient({ headers, form }: FakeRequest, { clientId, clientSecret }: FakeProvider): boolean {
  const [id, secret] = credentialsOf(headers.authorization, form)
  return id === clientId && secret === clientSecret
}

/** Apple's form: a JWT with the right claims that is signed with the team's key. */
function isOurTeam({ form }: FakeRequest, { clientId, issuer }: FakeProvider, { now }: Ledger): boolean {
  const { iss, sub, aud, exp } = claimsSignedBy(form.get('client_secret') ?? '', appleKeys().publicKey) ?? {}
  const isInTime = Number(exp) * 1000 > now().getTime()
  return form.get('client_id') === clientId && iss === appleTeam && sub === clientId && aud === issuer && isInTime
}

/** In the header `Basic`, the id and the secret are form-encoded (RFC 6749 section 2.3.1). */
function credentialsOf(authorization: string | undefined, form: URLSearchParams): (string | null)[] {
  if (!authorization?.startsWith('Basic ')) return [form.get('client_id'), form.get('client_secret')]
  const [id = '', secret = ''] = Buffer.from(authorization.slice(6), 'base64').toString('utf8').split(':')
  return [id, secret].map((part) => new URLSearchParams(`v=${part}`).get('v'))
}

function whenAuthorized({ headers }: FakeRequest, { accessTokens }: Ledger, profileOf: (grant: FakeGrant) => FakeProfile): FakeHandler {
  const grant = accessTokens.get((headers.authorization ?? '').replace(/^Bearer /, ''))
  return grant ? answer(200, profileOf(grant)) : answer(401, { error: 'invalid_token' })
}

function jwks(): FakeHandler {
  const key = { ...signingKeys().publicKey.export({ format: 'jwk' }), kid: 'fake-1', use: 'sig', alg: 'RS256' }
  return answer(200, { keys: [key] })
}

function discovery(_request: FakeRequest, provider: FakeProvider): FakeHandler {
  return answer(200, {
    issuer: provider.issuer,
    authorization_endpoint: provider.authorizeUrl,
    token_endpoint: provider.tokenUrl,
    userinfo_endpoint: provider.userinfoUrl,
    jwks_uri: provider.jwksUri,
  })
}

function introspect(request: FakeRequest, provider: FakeProvider, ledger: Ledger): FakeHandler {
  if (!isOurClient(request, provider)) return answer(401, { error: 'invalid_client' })
  const said = accessTokenClaims(provider, ledger, request.form.get('token'))
  return answer(200, said ? { active: true, token_type: 'Bearer', client_id: said.party, ...said.claims } : { active: false })
}

function tokeninfo({ url }: FakeRequest, provider: FakeProvider, ledger: Ledger): FakeHandler {
  const said = accessTokenClaims(provider, ledger, new URL(url, provider.issuer).searchParams.get('access_token'))
  if (!said) return answer(400, { error: 'invalid_token' })
  return answer(200, { azp: said.party, aud: said.party, ...said.claims, exp: String(said.claims.exp) })
}

/** As GitHub does: a token of another application gets the same response as an unknown token. */
function application({ url, headers, body }: FakeRequest, provider: FakeProvider, { accessTokens }: Ledger): FakeHandler {
  const { clientId, clientSecret } = provider
  const credentials = Buffer.from(`${clientId}:${clientSecret}`).toString('base64')
  if (headers.authorization !== `Basic ${credentials}`) return answer(401, { message: 'Bad credentials' })
  const grant = accessTokens.get(String((JSON.parse(body) as { access_token?: unknown }).access_token))
  const isOwn = grant && (grant.issuedTo ?? clientId) === clientId && url === `/api/applications/${encodeURIComponent(clientId)}/token`
  if (!isOwn) return answer(404, { message: 'Not Found' })
  const user = { ...provider.githubProfile, ...grant.profile }
  return answer(200, { id: 1, token: '', app: { client_id: clientId }, user })
}

/** Returns a handler with a fixed response. The handler sends an object as JSON, and a string unchanged. */
export function answer(status: number, content: unknown, headers: Record<string, string> = {}): FakeHandler {
  return (_request, response) => {
    const isText = typeof content === 'string' || Buffer.isBuffer(content)
    response.writeHead(status, { 'content-type': isText ? 'text/html' : 'application/json', ...headers })
    response.end(isText ? content : JSON.stringify(content))
  }
}
