/**
 * Whether a secret looks written by a person to fill the field, rather than drawn by a machine: a repeated pattern, a
 * run along the alphabet or the keyboard's digits, a handful of characters, or the words every sample file uses.
 * A random secret of 32 bytes in hex, base64 or any other usual encoding never does (less than one in a million).
 */
export function isPlaceholderSecret(secret: string): boolean {
  return hasFewCharacters(secret) || isRepetition(secret) || isSequence(secret) || isSampleText(secret)
}

function hasFewCharacters(secret: string): boolean {
  return new Set(secret).size < 6
}

/** 'changemechangemechangemechangeme': it repeats with a period shorter than a secret may be. */
function isRepetition(secret: string): boolean {
  for (let period = 1; period < 32 && period * 2 <= secret.length; period++) {
    if (secret.startsWith(secret.slice(period))) return true
  }
  return false
}

/** 'abcdefghijklmnopqrstuvwxyz012345': three of four characters follow their neighbour. */
function isSequence(secret: string): boolean {
  let steps = 0
  for (let index = 1; index < secret.length; index++) {
    if (Math.abs(secret.charCodeAt(index) - secret.charCodeAt(index - 1)) <= 1) steps++
  }
  return steps * 4 >= (secret.length - 1) * 3
}

const sampleWords = new RegExp(
  [
    ...['placeholder', 'passphrase', 'production', 'characters', 'changeit', 'changeme', 'password', 'insecure', 'replace', 'default'],
    ...['example', 'sample', 'secret', 'please', 'signing', 'random', 'string', 'change', 'super', 'least', 'bytes', 'minimum', 'chars'],
    ...['private', 'secure', 'dummy', 'value', 'token', 'access', 'refresh', 'auth', 'your', 'here', 'this', 'must', 'long', 'very'],
    ...[
      'with',
      'jwt',
      'key',
      'bit',
      'dev',
      'the',
      'not',
      'for',
      'use',
      'and',
      'enter',
      'insert',
      'todo',
      'my',
      'me',
      'at',
      'in',
      'be',
      'is',
    ],
  ].join('|'),
  'g',
)

/** 'your-secret-key-please-change-it-in-production': hardly anything is left without the words of sample files. */
function isSampleText(secret: string): boolean {
  const left = secret
    .toLowerCase()
    .replace(sampleWords, '')
    .replace(/[^a-z0-9]|123456789|12345|1234|123/g, '')
  return /^[\x20-\x7e]*$/.test(secret) && left.length < 12
}
