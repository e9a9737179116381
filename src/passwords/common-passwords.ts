let listed: ReadonlySet<string> | undefined

/**
 * Whether a lower-cased password is among the 49,233 most used ones. The list takes about 25 ms and 15 MB to load: that
 * is for the first password somebody chooses, not for everybody who imports the package.
 */
export function isListed(password: string): boolean {
  listed ??= load()
  return listed.has(password)
}

function load(): ReadonlySet<string> {
  const { dictionary } = require('@zxcvbn-ts/language-common') as { dictionary: { 'passwords-common': string[] } } // as its types say
  return new Set(dictionary['passwords-common'])
}
