import { isListed } from './common-passwords'

/** What people append to a word until it is long enough: a year, a date, `123!`. */
const longestTail = 8

/** Below it a name is found in many good passwords by chance. */
const shortestWord = 4

/**
 * Whether a password would be among the first guesses: a common one, or a word of the account's own (address, local
 * part, name), or something repeated; with or without up to eight digits and signs after it. A list alone would be for
 * show: of its 49,233 entries 308 reach the default minimum of 12 characters, and `password123456` is not one of them.
 */
export function isGuessable(password: string, about: { email: string; name: string | null }): boolean {
  const folded = fold(password)
  const words = ownWords(about)
  const isKnown = (word: string) => isListed(word) || words.has(word)
  return headsOf(folded).some((head) => isKnown(head) || isRepeated(head, isKnown))
}

/** The password, and what is left of it after cutting one to eight digits and signs (of ASCII: emoji are choices) off its end. */
function headsOf(password: string): string[] {
  const characters = [...password]
  const tail = characters.slice(-longestTail).findLastIndex((character) => /[^ -@[-`{-~]/.test(character)) + 1
  const cuts = Math.min(longestTail, characters.length) - tail
  return Array.from({ length: cuts + 1 }, (_, cut) => characters.slice(0, characters.length - cut).join(''))
}

/** `aaaaaaaaaaaa`, `abc1abc1abc1`, and a known word more than once. */
function isRepeated(password: string, isKnown: (word: string) => boolean): boolean {
  const unit = /^(.{1,32}?)\1+$/su.exec(password)?.[1]
  return unit !== undefined && ([...unit].length <= 4 || isKnown(unit))
}

/** The address, its local part, the name; each whole, in parts, and without what separates the parts. */
function ownWords({ email, name }: { email: string; name: string | null }): ReadonlySet<string> {
  const address = fold(email)
  const localPart = address.slice(0, address.lastIndexOf('@'))
  const words = [address, localPart, fold(name ?? '')].flatMap((word) => [word, ...partsOf(word), partsOf(word).join('')])
  return new Set(words.filter((word) => [...word].length >= shortestWord))
}

function partsOf(word: string): string[] {
  return word.split(/[^\p{L}\p{N}]+/u)
}

/** One spelling for comparing; what is hashed stays as it was typed. */
function fold(text: string): string {
  return text.normalize('NFKC').toLowerCase()
}
