import { ConfigurationError } from '../errors'

export type Environment = 'production' | 'development' | 'test'

const environments: readonly unknown[] = ['production', 'development', 'test'] satisfies Environment[]

/**
 * Whether the rules of production hold. The option decides; without it NODE_ENV, the one variable the library reads by
 * itself. Anything but `development` and `test` is production: a forgotten variable must not weaken anything.
 *
 * @throws ConfigurationError when the option is none of the three.
 */
export function isProduction(environment?: Environment): boolean {
  const current = environmentOf(environment)
  return current !== 'development' && current !== 'test'
}

/** True under the rules for tests, where nothing waits for a clock. @throws ConfigurationError as `isProduction` does */
export function isTest(environment?: Environment): boolean {
  return environmentOf(environment) === 'test'
}

function environmentOf(environment?: Environment): string | undefined {
  if (environment !== undefined && !environments.includes(environment)) {
    throw new ConfigurationError("Option environment must be 'production', 'development' or 'test'.")
  }
  return environment ?? process.env['NODE_ENV']
}
