/**
 * Returns true if a person seems to have written the secret. The function detects a repeated pattern, and a sequence of the alphabet or of
 * digits. The function also detects few different characters, and the words of sample files. The function accepts random secrets of 32
 * bytes in hex, base64 or another usual encoding. It wrongly rejects less than one in a million of these random secrets.
 */
export function isPlaceholderSecret(secret: string): boolean {
  return hasFewCharacters(secret) || isRepetition(secret) || isSequence(secret) || isSampleText(secret)
}

function hasFewCharacters(secret: string): boolean {
  return new Set(secret).size < 6
}

/** Returns true if the text repeats a pattern shorter than 32 characters, such as 'changemechangemechangemechangeme'. */
function isRepetition(secret: string): boolean {
  for (let period = 1; period < 32 && period * 2 <= secret.length; period++) {
    if (secret.startsWith(secret.slice(period))) return true
  }
  return false
}

/**
 * Returns true if at least three of four characters are equal to the character before, or differ from it by 1 in ASCII, as in
 * 'abcdefghijklmnopqrstuvwxyz012345'.
 */
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

/** Returns true if the text consists mostly of the words of sample files, such as 'your-secret-key-please-change-it-in-production'. */
function isSampleText(secret: string): boolean {
  const left = secret
    .toLowerCase()
    .replace(sampleWords, '')
    .replace(/[^a-z0-9]|123456789|12345|1234|123/g, '')
  return /^[\x20-\x7e]*$/.test(secret) && left.length < 12
}
