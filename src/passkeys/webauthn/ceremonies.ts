import type { Settings } from '../../core/config/every-setting'
import { isAtOrBelow } from '../../core/config/web-address'
import { decodeCbor } from './cbor'
import { algorithms, isWholeSignature, newEs256Key, readCoseKey } from './cose-key'
import { loadWebAuthnPackage, type WebAuthnPackage } from './package'
import { type PresentedAssertion, readAttestation, storedId } from './read-credential'
import { CeremonyRefused, ceremonyReasonOf, readOrigin } from './refused'

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

/** The data of a valid registration. */
export interface RegisteredCredential {
  readonly credentialId: string
  readonly publicKey: string
  readonly signCount: number
  readonly transports: readonly string[]
  readonly isBackupEligible: boolean
  readonly isBackedUp: boolean
  readonly aaguid: string
}

/** The stored data of a credential. */
export interface KnownCredential {
  readonly publicKey: string
  readonly isBackupEligible: boolean
}

/** The result of a valid assertion. */
export interface AssertedCredential {
  readonly signCount: number
  readonly isBackedUp: boolean
}

/** The registration and the assertion of Web Authentication, for one relying party. */
export interface WebAuthn {
  creationOptions(about: {
    challenge: string
    seconds: number
    user: PasskeyCreationOptions['user']
    exclude: readonly CredentialDescriptor[]
  }): PasskeyCreationOptions
  requestOptions(about: { challenge: string; seconds: number; allow?: readonly CredentialDescriptor[] }): PasskeyRequestOptions
  /**
   * Returns the new credential if it is for this site and this challenge, and the authenticator verified its user.
   * @throws Refused with the reason, which is for the log only
   */
  verifyRegistration(credential: unknown, challenge: string): Promise<RegisteredCredential>
  /**
   * Returns the result if this credential signed this challenge for this site, and the authenticator verified its user. The caller compares
   * the counter.
   * @param known null for an unknown credential. The function takes as long as for a known one, so that the time reveals nothing
   * @throws Refused with the reason, which is for the log only
   */
  verifyAssertion(presented: PresentedAssertion, challenge: string, known: KnownCredential | null): Promise<AssertedCredential>
}

/**
 * Returns the WebAuthn functions for this site. Only this function loads the package that verifies signatures.
 * @throws ConfigurationError if the package is not installed
 */
export function createWebAuthn(settings: Settings): WebAuthn {
  const engine = loadWebAuthnPackage()
  const site: Site = { engine, rpId: rpIdOf(settings), origins: originsOf(settings) }
  const decoy = { publicKey: newEs256Key(), isBackupEligible: false }
  const rp = { id: site.rpId, name: settings.webauthnRpName ?? settings.mfaIssuer ?? '' } // the boot checks require one of the two
  return {
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

function originsOf(settings: Settings): string[] {
  const { publicUrl, trustedOrigins, webauthnOrigins } = settings
  const trusted = trustedOrigins.filter((origin) => isAtOrBelow(new URL(origin).hostname, rpIdOf(settings)))
  return [...new Set([publicUrl, ...trusted, ...webauthnOrigins])]
}

/** Returns the result of `verify`. Translates an error of the package, because its text has values of the request. */
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
    // The package would compare the counters before it verifies the signature. We compare the counters after the verification, so that only
    // a valid signature can report a copy.
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

/**
 * Returns true if the page was in a frame on a page of another site. `@simplewebauthn/server` allows such a frame if the browser does not
 * name the other site.
 */
function isEmbedded(clientDataJSON: string): boolean {
  const { crossOrigin, topOrigin } = JSON.parse(Buffer.from(clientDataJSON, 'base64url').toString('utf8')) as Record<string, unknown>
  return (crossOrigin !== undefined && crossOrigin !== false) || topOrigin !== undefined
}

/**
 * Returns true if the attestation is `none`, or if the passkey itself signed the attestation (`packed` without certificates). Rejects
 * certificates, because we requested no attestation. Certificates would have to be parsed, and can contain URLs to fetch.
 */
function isUnattested(attestationObject: string): boolean {
  const decoded = decodeCbor(Buffer.from(attestationObject, 'base64url'))
  if (!(decoded instanceof Map) || decoded.size !== 3) return false
  const [format, statement] = [decoded.get('fmt'), decoded.get('attStmt')]
  return statement instanceof Map && (format === 'none' || (format === 'packed' && !statement.has('x5c')))
}
