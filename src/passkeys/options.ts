import { flag, type JsonSchema, shape, string } from '../http/description'
import type { PasskeyRecord } from '../store/auth-store'
import type { CredentialDescriptor } from './webauthn/ceremonies'

/** The options that begin a ceremony. Send `challenge` back together with the browser's response. */
export interface PasskeyOptions<Options> {
  /** The options for `navigator.credentials`. Parse them with `parseCreationOptionsFromJSON` or `parseRequestOptionsFromJSON`. */
  options: Options
  /** An opaque text. Keep the text until the browser has responded, and pass it on with the response. */
  challenge: string
}

/** Returns the descriptors of passkeys. A passkey whose id is stored as a hash has none, because the id itself is unknown. */
export function descriptorsOf(passkeys: readonly PasskeyRecord[]): CredentialDescriptor[] {
  return passkeys
    .filter(({ credentialId }) => !credentialId.includes(':'))
    .map(({ credentialId: id, transports }) => ({
      id,
      type: 'public-key',
      ...(transports !== '' && { transports: transports.split(' ') }),
    }))
}

/** Returns the options with the token as an additional field. Browsers ignore that field. */
export function optionsBody({ options, challenge }: PasskeyOptions<object>): object {
  return { ...options, challenge_token: challenge }
}

const descriptor = {
  ...shape('PasskeyDescriptor', { id: string, type: { const: 'public-key' }, transports: { type: 'array', items: string } }),
  required: ['id', 'type'],
}
const descriptors: JsonSchema = { type: 'array', items: descriptor }

export const creationOptionsSchema = shape('PasskeyCreationOptions', {
  rp: shape('RelyingParty', { id: string, name: string }),
  user: shape('PasskeyUser', { id: string, name: string, displayName: string }),
  challenge: string,
  pubKeyCredParams: { type: 'array', items: shape('PasskeyAlgorithm', { type: string, alg: { type: 'integer' } }) },
  timeout: { type: 'integer' },
  excludeCredentials: descriptors,
  authenticatorSelection: shape('PasskeySelection', { residentKey: string, requireResidentKey: flag, userVerification: string }),
  attestation: string,
  challenge_token: string,
})

const requestOptions = {
  challenge: string,
  timeout: { type: 'integer' },
  rpId: string,
  userVerification: string,
  challenge_token: string,
}
export const loginOptionsSchema = shape('PasskeyLoginOptions', requestOptions)
export const requestOptionsSchema = {
  ...shape('PasskeyRequestOptions', { ...requestOptions, allowCredentials: descriptors }),
  required: Object.keys(requestOptions),
}
