import { ConfigurationError } from '../errors'

export type Environment = 'production' | 'development' | 'test'

const environments: readonly unknown[] = ['production', 'development', 'test'] satisfies Environment[]

/**
 * Returns true if the rules of production apply. If the option is missing, the variable NODE_ENV decides. The library reads no other
 * variable on its own. Every value except `development` and `test` counts as production, so a missing variable cannot weaken the rules.
 *
 * @throws ConfigurationError if the option has another value than `production`, `development` or `test`
 */
export function isProduction(environment?: Environment): boolean {
  const current = environmentOf(environment)
  return current !== 'development' && current !== 'test'
}

/**
 * Returns true if the rules for tests apply. In tests, the library does not wait for timers.
 * @throws ConfigurationError if the option has another value than `production`, `development` or `test`
 */
export function isTest(environment?: Environment): boolean {
  return environmentOf(environment) === 'test'
}

function environmentOf(environment?: Environment): string | undefined {
  if (environment !== undefined && !environments.includes(environment)) {
    throw new ConfigurationError("Option environment must be 'production', 'development' or 'test'.")
  }
  return environment ?? process.env['NODE_ENV']
}
