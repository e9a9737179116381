import { isListed } from './common-passwords'

/** The longest ending that people append to a word until it is long enough: a year, a date, `123!`. */
const longestTail = 8

/** Shorter names appear in many good passwords by chance. */
const shortestWord = 4

/**
 * Returns true if a password would be among an attacker's first guesses. These are a common password, a word of the account (address, local
 * part, name), or a repetition. Up to eight digits and signs may follow it. A list alone would not help: only 308 of its 49,233 entries
 * reach the default minimum of 12 characters, and `password123456` is not one of them.
 */
export function isGuessable(password: string, about: { email: string; name: string | null }): boolean {
  const folded = fold(password)
  const words = ownWords(about)
  const isKnown = (word: string) => isListed(word) || words.has(word)
  return headsOf(folded).some((head) => isKnown(head) || isRepeated(head, isKnown))
}

/**
 * Returns the password, and the password without its last one to eight digits and signs. Only ASCII is cut off, because emoji are a choice.
 */
function headsOf(password: string): string[] {
  const characters = [...password]
  const tail = characters.slice(-longestTail).findLastIndex((character) => /[^ -@[-`{-~]/.test(character)) + 1
  const cuts = Math.min(longestTail, characters.length) - tail
  return Array.from({ length: cuts + 1 }, (_, cut) => characters.slice(0, characters.length - cut).join(''))
}

/** Returns true for `aaaaaaaaaaaa`, `abc1abc1abc1`, and a known word more than once. */
function isRepeated(password: string, isKnown: (word: string) => boolean): boolean {
  const unit = /^(.{1,32}?)\1+$/su.exec(password)?.[1]
  return unit !== undefined && ([...unit].length <= 4 || isKnown(unit))
}

/** Returns the address, its local part and the name: each whole, in parts, and without separators. */
function ownWords({ email, name }: { email: string; name: string | null }): ReadonlySet<string> {
  const address = fold(email)
  const localPart = address.slice(0, address.lastIndexOf('@'))
  const words = [address, localPart, fold(name ?? '')].flatMap((word) => [word, ...partsOf(word), partsOf(word).join('')])
  return new Set(words.filter((word) => [...word].length >= shortestWord))
}

function partsOf(word: string): string[] {
  return word.split(/[^\p{L}\p{N}]+/u)
}

/** Returns one spelling for comparing. The password is hashed as it was typed. */
function fold(text: string): string {
  return text.normalize('NFKC').toLowerCase()
}
