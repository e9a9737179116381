let listed: ReadonlySet<string> | undefined

/**
 * Returns true if a lower-case password is among the 49,233 most used passwords. Loading the list takes about 25 ms and 15 MB. The list is
 * loaded when the first person chooses a password, so that importing the package stays fast.
 */
export function isListed(password: string): boolean {
  listed ??= load()
  return listed.has(password)
}

function load(): ReadonlySet<string> {
  const { dictionary } = require('@zxcvbn-ts/language-common') as { dictionary: { 'passwords-common': string[] } } // according to its types
  return new Set(dictionary['passwords-common'])
}
