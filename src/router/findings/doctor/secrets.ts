import { sharesItsRealm } from '../../shared-realm'
import { type Check, error, type Patient, type Result, warning } from './check'

export const secretChecks: readonly Check[] = [
  { name: 'secret-guessable', examine: guessableSecret },
  { name: 'secret-reused', examine: reusedSecret },
  { name: 'secret-rotation', examine: unfinishedRotation },
  { name: 'shared-realm', examine: sharedRealm },
  { name: 'mfa-secret-plain', examine: plainFactorSecrets },
  { name: 'signing-keys-left', examine: signingKeysLeft },
]

const newSecret = 'Make one by `npx --no-install doorward secret`'

function secretsOf({ ctx }: Patient): readonly string[] {
  return [ctx.settings.jwtSecret].flat()
}

/**
 * Returns true if an attacker could guess the secret, because it consists of plain words or of few different characters. At boot, the
 * library already rejects short secrets and placeholders.
 */
function isGuessable(secret: string): boolean {
  // A random secret of hexadecimal digits can have fewer than 12 different characters, so 8 are enough.
  const fewest = /^[\da-f]+$/i.test(secret) ? 8 : 12
  return new Set(secret).size < fewest || /^[A-Z]?[a-z' .,-]+$/.test(secret)
}

function guessableSecret(patient: Patient): Result {
  if (!secretsOf(patient).some(isGuessable)) return null
  return error(
    'jwtSecret (AUTH_JWT_SECRET) has only a few different characters, or consists of plain words.',
    'An attacker who guesses it can create tokens for every account. One token is enough to test guesses, without a request to this server.',
    `${newSecret}, and set it in every process.`,
  )
}

function reusedSecret(patient: Patient): Result {
  const { mfaSecretKey } = patient.ctx.settings
  if (mfaSecretKey === null) return null
  const bytes = (text: string) => Buffer.from(text, 'base64').toString('hex')
  const factorKeys = mfaSecretKey.split(',').map((key) => bytes(key.trim()))
  if (!secretsOf(patient).some((secret) => factorKeys.includes(bytes(secret)))) return null
  return warning(
    'mfaSecretKey (AUTH_MFA_SECRET_KEY) and jwtSecret (AUTH_JWT_SECRET) have the same value.',
    'One leak reveals both, and you cannot change one without the other.',
    'Make another key by `npx --no-install doorward secret mfa`, and put it before the old one.',
  )
}

function unfinishedRotation(patient: Patient): Result {
  const count = secretsOf(patient).length
  if (count < 3) return null // during a replacement there are two secrets
  return warning(
    `jwtSecret (AUTH_JWT_SECRET) is a list of ${count} secrets.`,
    'Anybody who has a listed secret can still create valid tokens.',
    'Remove those whose sessions have ended (docs/signing-keys.md).',
  )
}

function sharedRealm({ ctx }: Patient): Result {
  if (!sharesItsRealm(ctx)) return null
  return warning(
    'Another router of this process has the same jwtSecret (AUTH_JWT_SECRET) and realm (AUTH_REALM), but other accounts.',
    'A token of one router is a token of somebody else at the other. The same holds for two apps with one secret.',
    'Give each router a realm of its own (docs/signing-keys.md).',
  )
}

function plainFactorSecrets({ ctx }: Patient): Result {
  if (!ctx.settings.mfaEnabled || ctx.settings.mfaSecretKey !== null) return null
  return warning(
    'mfaSecretKey (AUTH_MFA_SECRET_KEY) is not set.',
    'Secrets of authenticator apps are stored unencrypted, so a copy of the database is a copy of every second factor.',
    'Make a key by `npx --no-install doorward secret mfa`.',
  )
}

function signingKeysLeft({ ctx }: Patient): Result {
  const count = ctx.settings.jwtKeys?.length ?? 0
  if (count < 4) return null
  return warning(
    `jwtKeys (AUTH_JWT_KEYS) holds ${count} keys.`,
    'Each of them verifies tokens, so each has to be kept secret.',
    'Remove those whose tokens have expired: `npx --no-install doorward keys rotate --step retire`.',
  )
}
