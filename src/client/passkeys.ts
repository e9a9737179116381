import type { AuthClientError } from './error.js'
import type { Body, Call } from './table.js'

export { routes } from './routes.js'

/**
 * The part of the client that speaks with the authenticator (Web Authentication Level 3), and the routes of what is no sign-in. Loaded at
 * the first call that needs it.
 */

type Options = Body & { readonly challenge_token: string }

/** The routes of the options, by the route that takes the answer. The others confirm a session. */
const optionsOf: Readonly<Record<string, string>> = {
  '/mfa/verify': '/mfa/passkey/options m',
  '/passkeys/login': '/passkeys/login/options',
  '/activate': '/passkeys/login/options',
  '/passkeys/register': '/passkeys/register/options t',
  '/signup/passkey': '/signup/passkey/options',
}

/**
 * Asks for a passkey, or for a new one, and adds the answer to the body.
 * @param path the operation that takes the body
 * @param passkey true: another passkey confirms a registration
 */
export async function askAuthenticator(call: Call, path: string, body: Body, passkey: unknown): Promise<void> {
  const isNew = /(register|signup\/passkey)$/.test(path) // not their options, which a passkey can confirm
  const { challenge_token, ...options } = (await call(optionsOf[path] ?? '/reauthenticate/passkey/options kt', [
    asked(path, body, passkey),
  ])) as Options
  const publicKey = decoded(options)
  const credential = isNew
    ? await navigator.credentials.create({ publicKey: publicKey as unknown as PublicKeyCredentialCreationOptions })
    : await navigator.credentials.get({ publicKey: publicKey as unknown as PublicKeyCredentialRequestOptions })
  Object.assign(body, { credential: encoded(credential), challenge_token })
}

interface SignalAnswer {
  readonly rp_id: string
  readonly user_id: string
  /** Null: the router does not know every id. The list would hide a passkey that works. */
  readonly all_accepted_credential_ids: readonly string[] | null
  readonly name: string
  readonly display_name: string
}

/** The signal methods of Web Authentication Level 3, section 5.1.10. A browser can lack each of them. */
type Signals = Partial<
  Record<'signalAllAcceptedCredentials' | 'signalCurrentUserDetails', (details: Readonly<Record<string, unknown>>) => Promise<unknown>>
>

/** The clients of routers without passkeys. */
const without = new WeakSet<Call>()

/** Tells the authenticators which passkeys are left, and the person's names. Nobody waits for it, and nothing depends on it. */
export async function signal(call: Call): Promise<void> {
  if (without.has(call)) return
  try {
    const answer = (await call('GET/passkeys/signal', [])) as SignalAnswer
    const { rp_id: rpId, user_id: userId, all_accepted_credential_ids: allAcceptedCredentialIds, name, display_name: displayName } = answer
    const browser = PublicKeyCredential as unknown as Signals
    if (allAcceptedCredentialIds) await browser.signalAllAcceptedCredentials?.({ rpId, userId, allAcceptedCredentialIds })
    await browser.signalCurrentUserDetails?.({ rpId, userId, name, displayName })
  } catch (error) {
    if ((error as Partial<AuthClientError>).status === 404) without.add(call)
  }
}

/** What the options need. The confirmation of a registration goes there alone. */
function asked(path: string, body: Body, passkey: unknown): Body {
  if (path === '/signup/passkey') return { email: body['email'], name: body['name'], invitation: body['invitation'] }
  if (path !== '/passkeys/register') return {}
  const confirmation: Body = passkey === true ? { passkey } : {}
  for (const key of Object.keys(body)) {
    if (key === 'name') continue
    confirmation[key] = body[key]
    delete body[key]
  }
  return confirmation
}

const binary = ['challenge', 'id', 'rawId', 'clientDataJSON', 'attestationObject', 'authenticatorData', 'signature', 'userHandle']

/** Options as the browser takes them: the ids and the challenge are bytes. `rp.id` and `rpId` are names. */
function decoded(value: Body): Body {
  const read = (entry: unknown, key: string, parent: string): unknown => {
    if (Array.isArray(entry)) return entry.map((one) => read(one, '', key))
    if (typeof entry === 'object' && entry !== null)
      return Object.fromEntries(Object.entries(entry).map(([name, one]) => [name, read(one, name, key || parent)]))
    const isBytes = key === 'challenge' || (key === 'id' && parent !== 'rp')
    return isBytes ? bytesOf(String(entry)) : entry
  }
  return read(value, '', '') as Body
}

/** As `PublicKeyCredential.toJSON()`, which older browsers do not have. */
function encoded(credential: Credential | null): Body {
  if (!credential) throw new DOMException('No passkey was chosen.', 'NotAllowedError')
  const { id, type, rawId, response, authenticatorAttachment } = credential as PublicKeyCredential
  const transports = (response as AuthenticatorAttestationResponse).getTransports?.()
  const parts = binary.flatMap((name) => {
    const part = (response as unknown as Record<string, unknown>)[name]
    return part instanceof ArrayBuffer ? [[name, textOf(part)]] : []
  })
  return {
    id,
    type,
    rawId: textOf(rawId),
    response: { ...Object.fromEntries(parts), ...(transports && { transports }) },
    authenticatorAttachment,
    clientExtensionResults: (credential as PublicKeyCredential).getClientExtensionResults(),
  }
}

function bytesOf(text: string): Uint8Array {
  return Uint8Array.from(atob(text.replace(/-/g, '+').replace(/_/g, '/')), (letter) => letter.charCodeAt(0))
}

function textOf(bytes: ArrayBuffer): string {
  const text = btoa(String.fromCharCode(...new Uint8Array(bytes)))
  return text.replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '')
}
