import { ConfigurationError } from '../errors'

export type Environment = 'production' | 'development' | 'test'

const environments: readonly unknown[] = ['production', 'development', 'test'] satisfies Environment[]

/**
 * Whether the rules of production hold. The option decides; without it NODE_ENV, the one variable the library reads by
 * itself. Anything but `development` and `test` is production: a variable someone forgot must not open anything.
 *
 * @throws ConfigurationError when the option is none of the three.
 */
export function isProduction(environment?: Environment): boolean {
  if (environment !== undefined && !environments.includes(environment)) {
    throw new ConfigurationError("Option environment must be 'production', 'development' or 'test'.")
  }
  const current = environment ?? process.env['NODE_ENV']
  return current !== 'development' && current !== 'test'
}
