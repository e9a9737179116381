import type { Settings } from '../../core/config/every-setting'
import { isAtOrBelow } from '../../core/config/web-address'
import { ConfigurationError } from '../../core/errors'
import {
  algorithms,
  decodeCbor,
  isWholeSignature,
  newEs256Key,
  type PresentedAssertion,
  readAttestation,
  readCoseKey,
  storedId,
} from './read-credential'

/** A credential in options. */
export interface CredentialDescriptor {
  readonly id: string
  readonly type: 'public-key'
  readonly transports?: readonly string[]
}

/** `PublicKeyCredentialCreationOptionsJSON` of Web Authentication Level 3, for `parseCreationOptionsFromJSON`. */
export interface PasskeyCreationOptions {
  /** The site: `webauthnRpId`, and the name that the browser shows. */
  readonly rp: {
    /** The domain that the passkey belongs to. */
    readonly id: string
    /** `webauthnRpName`, or `mfaIssuer` if `webauthnRpName` is not set. */
    readonly name: string
  }
  /** The account in the authenticator's list. */
  readonly user: {
    /** The user handle, 32 bytes in base64url that do not reveal the user's id. */
    readonly id: string
    /** The address of the account. */
    readonly name: string
    /** The person's name. If the account has no name, the address. */
    readonly displayName: string
  }
  /** 32 random bytes, in base64url. */
  readonly challenge: string
  /** The allowed algorithms: ES256, EdDSA and RS256. */
  readonly pubKeyCredParams: readonly { readonly type: 'public-key'; readonly alg: number }[]
  /** How long the browser waits for the person, in milliseconds. */
  readonly timeout: number
  /** The passkeys that the account already has. */
  readonly excludeCredentials: readonly CredentialDescriptor[]
  /** Requirements for the authenticator. */
  readonly authenticatorSelection: {
    /** The authenticator must store the passkey, so that the passkey can log in without an address. */
    readonly residentKey: 'required'
    /** The same requirement as `residentKey`, in the form of Web Authentication Level 1. */
    readonly requireResidentKey: true
    /** The authenticator must ask its user for a fingerprint, a face or a PIN. */
    readonly userVerification: 'required'
  }
  /** No attestation is requested, so the maker of the authenticator is not verified. */
  readonly attestation: 'none'
}

/** `PublicKeyCredentialRequestOptionsJSON` of Web Authentication Level 3, for `parseRequestOptionsFromJSON`. */
export interface PasskeyRequestOptions {
  /** 32 random bytes, in base64url. */
  readonly challenge: string
  /** How long the browser waits for the person, in milliseconds. */
  readonly timeout: number
  /** The domain that the passkey belongs to. */
  readonly rpId: string
  /** The authenticator must ask its user for a fingerprint, a face or a PIN. */
  readonly userVerification: 'required'
  /** The passkeys that the browser may use. Left out: any passkey of this site. */
  readonly allowCredentials?: readonly CredentialDescriptor[]
}

export interface RegisteredCredential {
  readonly credentialId: string
  readonly publicKey: string
  readonly signCount: number
  readonly transports: readonly string[]
  readonly isBackupEligible: boolean
  readonly isBackedUp: boolean
  readonly aaguid: string
}

interface KnownCredential {
  readonly publicKey: string
  readonly isBackupEligible: boolean
}

export interface AssertedCredential {
  readonly signCount: number
  readonly isBackedUp: boolean
}

export interface WebAuthn {
  /** The domain of the passkeys. */
  readonly rpId: string
  creationOptions(about: {
    challenge: string
    seconds: number
    user: PasskeyCreationOptions['user']
    exclude: readonly CredentialDescriptor[]
  }): PasskeyCreationOptions
  requestOptions(about: { challenge: string; seconds: number; allow?: readonly CredentialDescriptor[] }): PasskeyRequestOptions
  /** The authenticator must have verified its user. @throws CeremonyRefused with the reason, which is for the log only */
  verifyRegistration(credential: unknown, challenge: string): Promise<RegisteredCredential>
  /**
   * The authenticator must have verified its user. The caller compares the counter.
   * @param known null takes as long as a known credential, so that the time reveals nothing
   * @throws CeremonyRefused with the reason, which is for the log only
   */
  verifyAssertion(presented: PresentedAssertion, challenge: string, known: KnownCredential | null): Promise<AssertedCredential>
}

/** Only this function loads the package that verifies signatures. @throws ConfigurationError if the package is not installed */
export function createWebAuthn(settings: Settings): WebAuthn {
  const engine = loadWebAuthnPackage()
  const site: Site = { engine, rpId: rpIdOf(settings), origins: originsOf(settings) }
  const decoy = { publicKey: newEs256Key(), isBackupEligible: false }
  const rp = { id: site.rpId, name: settings.webauthnRpName ?? settings.mfaIssuer ?? '' } // the boot checks require one of the two
  return {
    rpId: site.rpId,
    creationOptions: ({ challenge, seconds, user, exclude }) => ({
      rp,
      user,
      challenge,
      pubKeyCredParams: algorithms.map((alg) => ({ type: 'public-key', alg })),
      timeout: seconds * 1000,
      excludeCredentials: exclude,
      authenticatorSelection: { residentKey: 'required', requireResidentKey: true, userVerification: 'required' },
      attestation: 'none',
    }),
    requestOptions: ({ challenge, seconds, allow }) => ({
      challenge,
      timeout: seconds * 1000,
      rpId: rp.id,
      userVerification: 'required',
      ...(allow && { allowCredentials: allow }),
    }),
    verifyRegistration: (credential, challenge) => explained(credential, () => verifyRegistration(site, credential, challenge)),
    verifyAssertion: async (presented, challenge, known) => {
      const asserted = explained({ response: presented }, () => verifyAssertion(site, presented, challenge, known ?? decoy))
      if (known) return asserted
      await asserted.catch(() => null)
      throw new CeremonyRefused('no account has this passkey. It was removed here, but not from the authenticator')
    },
  }
}

interface Site {
  readonly engine: WebAuthnPackage
  readonly rpId: string
  readonly origins: string[]
}

function rpIdOf({ webauthnRpId, publicUrl }: Settings): string {
  return webauthnRpId ?? new URL(publicUrl).hostname
}

/** In the order of `webauthnOrigins`: sites that are neither the RP id nor below it (Web Authentication Level 3, section 5.11). */
export function relatedOrigins(settings: Settings): string[] {
  const { webauthnOrigins } = settings
  return webauthnOrigins.filter((origin) => origin.startsWith('https:') && !isAtOrBelow(new URL(origin).hostname, rpIdOf(settings)))
}

function originsOf(settings: Settings): string[] {
  const { publicUrl, trustedOrigins, webauthnOrigins } = settings
  const trusted = trustedOrigins.filter((origin) => isAtOrBelow(new URL(origin).hostname, rpIdOf(settings)))
  return [...new Set([publicUrl, ...trusted, ...webauthnOrigins])]
}

/** An error of the package has values of the request in its text. */
async function explained<T>(credential: unknown, verify: () => Promise<T>): Promise<T> {
  try {
    return await verify()
  } catch (error) {
    throw error instanceof CeremonyRefused ? error : new CeremonyRefused(ceremonyReasonOf(error, readOrigin(credential)))
  }
}

async function verifyRegistration({ engine, rpId, origins }: Site, credential: unknown, challenge: string): Promise<RegisteredCredential> {
  const presented = readAttestation(credential)
  if (!presented) throw new CeremonyRefused('a field of the response is missing, malformed or too long')
  if (isEmbedded(presented.clientDataJSON)) throw new CeremonyRefused('the page was in a frame of another site')
  if (!isUnattested(presented.attestationObject)) throw new CeremonyRefused('the attestation has certificates, and doorward asked for none')
  const { id, clientDataJSON, attestationObject, transports } = presented
  const { verified, registrationInfo: found } = await engine.verifyRegistrationResponse({
    response: { id, rawId: id, type: 'public-key', response: { clientDataJSON, attestationObject }, clientExtensionResults: {} },
    expectedChallenge: challenge,
    expectedOrigin: origins,
    expectedRPID: rpId,
    requireUserPresence: true,
    requireUserVerification: true,
    supportedAlgorithmIDs: [...algorithms],
  })
  if (!verified || !found || found.credential.id !== id) throw new CeremonyRefused('the signature or the id of the credential is wrong')
  const publicKey = Buffer.from(found.credential.publicKey)
  if (!readCoseKey(publicKey)) throw new CeremonyRefused('the key is not of ES256, EdDSA or RS256')
  return {
    credentialId: storedId(id),
    publicKey: publicKey.toString('base64url'),
    signCount: found.credential.counter,
    transports,
    isBackupEligible: found.credentialDeviceType === 'multiDevice',
    isBackedUp: found.credentialBackedUp,
    aaguid: found.aaguid,
  }
}

async function verifyAssertion(
  { engine, rpId, origins }: Site,
  { id, clientDataJSON, authenticatorData, signature }: PresentedAssertion,
  challenge: string,
  known: KnownCredential,
): Promise<AssertedCredential> {
  const publicKey = Buffer.from(known.publicKey, 'base64url')
  if (isEmbedded(clientDataJSON)) throw new CeremonyRefused('the page was in a frame of another site')
  if (!isWholeSignature(publicKey, Buffer.from(signature, 'base64url'))) throw new CeremonyRefused('the signature is malformed')
  const { verified, authenticationInfo: found } = await engine.verifyAuthenticationResponse({
    response: { id, rawId: id, type: 'public-key', response: { clientDataJSON, authenticatorData, signature }, clientExtensionResults: {} },
    expectedChallenge: challenge,
    expectedOrigin: origins,
    expectedRPID: rpId,
    requireUserVerification: true,
    // The package would compare the counters before the signature. We do so afterwards, so that only a valid signature can report a copy.
    credential: { id, publicKey, counter: -1 },
  })
  const isEligible = found.credentialDeviceType === 'multiDevice'
  if (!verified) throw new CeremonyRefused('the signature is not of this passkey')
  if (isEligible !== known.isBackupEligible)
    throw new CeremonyRefused(
      'the passkey changed whether it may be backed up (BE flag), which must never change. The person must sign in another way, remove this passkey here and in the authenticator, and add it again',
    )
  return { signCount: found.newCounter, isBackedUp: found.credentialBackedUp }
}

/** `@simplewebauthn/server` allows a frame on another site's page if the browser does not name that site. */
function isEmbedded(clientDataJSON: string): boolean {
  const { crossOrigin, topOrigin } = JSON.parse(Buffer.from(clientDataJSON, 'base64url').toString('utf8')) as Record<string, unknown>
  return (crossOrigin !== undefined && crossOrigin !== false) || topOrigin !== undefined
}

/** `none` or self-signed. We requested no attestation: certificates would have to be parsed, and can contain URLs to fetch. */
function isUnattested(attestationObject: string): boolean {
  const decoded = decodeCbor(Buffer.from(attestationObject, 'base64url'))
  if (!(decoded instanceof Map) || decoded.size !== 3) return false
  const [format, statement] = [decoded.get('fmt'), decoded.get('attStmt')]
  return statement instanceof Map && (format === 'none' || (format === 'packed' && !statement.has('x5c')))
}

type WebAuthnPackage = Pick<typeof import('@simplewebauthn/server'), 'verifyAuthenticationResponse' | 'verifyRegistrationResponse'>

/** @throws ConfigurationError if the package is missing or does not load; the message says how to install it */
function loadWebAuthnPackage(): WebAuthnPackage {
  try {
    return require('@simplewebauthn/server') as WebAuthnPackage // according to the package's types
  } catch (cause) {
    throw new ConfigurationError(
      'passkeysEnabled (AUTH_PASSKEYS_ENABLED) needs the package @simplewebauthn/server, which is missing or does not load; run `npm install @simplewebauthn/server`.',
      { cause },
    )
  }
}

/** Our own sentence, for the log and never for the client. */
export class CeremonyRefused extends Error {
  override readonly name = 'Refused'
}

/** By messages of @simplewebauthn/server. */
const reasons: readonly (readonly [RegExp, string])[] = [
  [
    /RP ID/i,
    'the passkey is of another domain. Check webauthnRpId (AUTH_WEBAUTHN_RP_ID): passkeys work only for the domain that made them',
  ],
  [/challenge/i, 'the challenge is not the one of these options'],
  [/user (?:could not be verified|verification)/i, 'the authenticator did not verify its user (fingerprint, face or PIN)'],
  [/user (?:not|was not|presence)/i, 'nobody touched the authenticator'],
  [/response type/i, 'the response is of another ceremony (create or get)'],
  [/alg/i, 'the key is not of ES256, EdDSA or RS256'],
]

/** @param origin the origin that the browser named; null: unreadable */
function ceremonyReasonOf(error: unknown, origin: string | null): string {
  const text = error instanceof Error ? error.message : ''
  if (/origin/i.test(text))
    return `the page has the origin ${origin ?? 'of no website'}. If the page is yours, add the origin to webauthnOrigins (AUTH_WEBAUTHN_ORIGINS)`
  return reasons.find(([pattern]) => pattern.test(text))?.[1] ?? 'the response cannot be read'
}

/** A browser wrote it, but an attacker can write anything. */
function readOrigin(credential: unknown): string | null {
  try {
    const { response } = credential as { response: { clientDataJSON: string } } // the catch takes every other form
    const { origin } = JSON.parse(Buffer.from(response.clientDataJSON, 'base64url').toString('utf8')) as Record<string, unknown>
    return typeof origin === 'string' && /^[a-z-]{2,20}:[\w./:[\]-]{1,200}$/.test(origin) ? origin : null
  } catch {
    return null
  }
}

/**
 * Makers by AAGUID, from the public lists of the FIDO Alliance and of the passkey developers (November 2026). Only shown in a list. No
 * check uses them, because an AAGUID is not signed without attestation.
 */
const names: ReadonlyMap<string, string> = new Map([
  ['08987058-cadc-4b81-b6e1-30de50dcbe96', 'Windows Hello'],
  ['0ea242b4-43c4-4a1b-8b17-dd6d0b6baec6', 'Keeper'],
  ['50726f74-6f6e-5061-7373-50726f746f6e', 'Proton Pass'],
  ['531126d6-e717-415c-9320-3d9aa6981239', 'Dashlane'],
  ['53414d53-554e-4700-0000-000000000000', 'Samsung Pass'],
  ['6028b017-b1d4-4c02-b4b3-afcdafc96bb2', 'Windows Hello'],
  ['771b48fd-d3d4-4f74-9232-fc157ab0507a', 'Edge on Mac'],
  ['9ddd1817-af5a-4672-a2b9-3e3dd95000a9', 'Windows Hello'],
  ['a10c6dd9-465e-4226-8198-c7c44b91c555', 'Kaspersky Password Manager'],
  ['a11a5faa-9f32-4b8c-8c5d-2f7d13e8c942', 'AliasVault'],
  ['adce0002-35bc-c60a-648b-0b25f1f05503', 'Chrome on Mac'],
  ['b35a26b2-8f6e-4697-ab1d-d44db4da28c6', 'Zoho Vault'],
  ['b5397666-4885-aa6b-cebf-e52262a439a2', 'Chromium'],
  ['b78a0a55-6ef8-d246-a042-ba0f6d55050c', 'LastPass'],
  ['b84e4048-15dc-4dd0-8640-f4f60813c8af', 'NordPass'],
  ['bada5566-a7aa-401f-bd96-45619a55120d', '1Password'],
  ['d3452668-01fd-4c12-926c-83a4204853aa', 'Microsoft Password Manager'],
  ['d548826e-79b4-db40-a3d8-11116f7e8349', 'Bitwarden'],
  ['dd4ec289-e01d-41c9-bb89-70fa845d4bf2', 'iCloud Keychain'],
  ['ea9b8d66-4d01-1d21-3ce4-b6b48cb575d4', 'Google Password Manager'],
  ['eaecdef2-1c31-5634-8639-f1cbd9c00a08', 'KeePassDX'],
  ['f3809540-7f14-49c1-a8b3-8f813b225541', 'Enpass'],
  ['fa37f553-f9b6-4adb-ac53-8bbb57ebdf0d', 'Norton Password Manager'],
  ['fbfc3007-154e-4ecc-8c0b-6e020557d7bd', 'Apple Passwords'],
  ['fdb141b2-5d84-443e-8a35-4698c205a502', 'KeePassXC'],
])

export function authenticatorName(aaguid: string): string | null {
  return names.get(aaguid) ?? null
}
