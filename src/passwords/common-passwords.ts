let listed: ReadonlySet<string> | undefined

/**
 * Returns true if a password in lower case is among the 49,233 most used ones. The list takes about 25 ms and 15 MB to load. So it is
 * loaded for the first password that a person chooses, and not by the import of the package.
 */
export function isListed(password: string): boolean {
  listed ??= load()
  return listed.has(password)
}

function load(): ReadonlySet<string> {
  const { dictionary } = require('@zxcvbn-ts/language-common') as { dictionary: { 'passwords-common': string[] } } // as its types say
  return new Set(dictionary['passwords-common'])
}
