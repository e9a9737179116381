import { isListed } from './common-passwords'

/** The most characters that are cut off the end of a password. People often append a year, a date or `123!` to a word that is too short. */
const longestTail = 8

/** The minimum length of a word of the account. The check ignores shorter words, because they appear in many good passwords by chance. */
const shortestWord = 4

/**
 * Returns true if a password would be among an attacker's first guesses. The first guesses are common passwords, words of the account
 * (address, local part, name) and repetitions. Up to eight digits and signs may follow. The list of common passwords alone would not help.
 * Only 308 of its 49,233 entries reach the default minimum of 12 characters, and `password123456` is not in the list.
 */
export function isGuessable(password: string, about: { email: string; name: string | null }): boolean {
  const folded = fold(password)
  const words = ownWords(about)
  const isKnown = (word: string) => isListed(word) || words.has(word)
  return headsOf(folded).some((head) => isKnown(head) || isRepeated(head, isKnown))
}

/**
 * Returns the password, and the password without its last digits and signs (one to eight). Only ASCII signs are cut off, because people
 * choose emoji deliberately.
 */
function headsOf(password: string): string[] {
  const characters = [...password]
  const tail = characters.slice(-longestTail).findLastIndex((character) => /[^ -@[-`{-~]/.test(character)) + 1
  const cuts = Math.min(longestTail, characters.length) - tail
  return Array.from({ length: cuts + 1 }, (_, cut) => characters.slice(0, characters.length - cut).join(''))
}

/** Returns true for `aaaaaaaaaaaa`, for `abc1abc1abc1`, and for a known word that repeats. */
function isRepeated(password: string, isKnown: (word: string) => boolean): boolean {
  const unit = /^(.{1,32}?)\1+$/su.exec(password)?.[1]
  return unit !== undefined && ([...unit].length <= 4 || isKnown(unit))
}

/** Returns the words of the address, the local part and the name. Each text is listed whole, in parts, and without separators. */
function ownWords({ email, name }: { email: string; name: string | null }): ReadonlySet<string> {
  const address = fold(email)
  const localPart = address.slice(0, address.lastIndexOf('@'))
  const words = [address, localPart, fold(name ?? '')].flatMap((word) => [word, ...partsOf(word), partsOf(word).join('')])
  return new Set(words.filter((word) => [...word].length >= shortestWord))
}

function partsOf(word: string): string[] {
  return word.split(/[^\p{L}\p{N}]+/u)
}

/** Returns the text in one spelling for comparisons. The hasher gets the password as the person typed it. */
function fold(text: string): string {
  return text.normalize('NFKC').toLowerCase()
}
