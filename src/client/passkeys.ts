import type { Body, Call } from './table.js'

/**
 * The part of the client that speaks with the authenticator (Web Authentication Level 3). Loaded at the first call that needs it.
 */

type Options = Body & { readonly challenge_token: string }

/** Asks for a passkey. Returns the fields that show it. @param path the operation that takes them */
export async function answerFor(call: Call, path: string): Promise<Body> {
  const isStep = path === '/mfa/verify'
  const isLogin = path === '/passkeys/login'
  const [route, flags] = isStep ? ['/mfa/passkey', 'm'] : isLogin ? ['/passkeys/login', ''] : ['/reauthenticate/passkey', 'kt']
  const { challenge_token, ...options } = (await call({ method: 'POST', path: `${route}/options`, flags }, [{}])) as Options
  const publicKey = decoded(options) as unknown as PublicKeyCredentialRequestOptions
  return { credential: encoded(await navigator.credentials.get({ publicKey })), challenge_token }
}

/** Creates a passkey and registers it. */
export async function register(call: Call, { name, ...confirmation }: Body = {}): Promise<unknown> {
  const ask = { method: 'POST', path: '/passkeys/register/options', flags: 't' }
  const { challenge_token, ...options } = (await call(ask, [confirmation])) as Options
  const publicKey = decoded(options) as unknown as PublicKeyCredentialCreationOptions
  const credential = encoded(await navigator.credentials.create({ publicKey }))
  const body = { credential, challenge_token, ...(name === undefined ? {} : { name }) }
  return call({ method: 'POST', path: '/passkeys/register', flags: 't' }, [body])
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
