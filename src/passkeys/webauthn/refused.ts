/** Why a passkey was refused. The message is our own sentence, for the log and never for the client. */
export class CeremonyRefused extends Error {
  override readonly name = 'Refused'
}

/** The messages of @simplewebauthn/server, and what we say instead. */
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

/** Returns our sentence for an error of the package. @param origin the origin that the browser named; null: unreadable */
export function ceremonyReasonOf(error: unknown, origin: string | null): string {
  const text = error instanceof Error ? error.message : ''
  if (/origin/i.test(text))
    return `the page has the origin ${origin ?? 'of no website'}. If the page is yours, add the origin to webauthnOrigins (AUTH_WEBAUTHN_ORIGINS)`
  return reasons.find(([pattern]) => pattern.test(text))?.[1] ?? 'the response cannot be read'
}

/** Returns the origin in a response, if it looks like one. A browser wrote it, but an attacker can write anything. */
export function readOrigin(credential: unknown): string | null {
  try {
    const { response } = credential as { response: { clientDataJSON: string } } // the catch takes every other form
    const { origin } = JSON.parse(Buffer.from(response.clientDataJSON, 'base64url').toString('utf8')) as Record<string, unknown>
    return typeof origin === 'string' && /^[a-z-]{2,20}:[\w./:[\]-]{1,200}$/.test(origin) ? origin : null
  } catch {
    return null
  }
}
