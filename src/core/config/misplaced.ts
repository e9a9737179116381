import { ConfigurationError } from '../errors'
import { seeTroubleshooting } from '../troubleshooting'

/**
 * Rejects a setting among the options, and an option among the settings.
 * @throws ConfigurationError for a misplaced name
 */
export function refuseMisplaced(
  where: string,
  options: object,
  { optionNames, settingNames }: { optionNames: readonly string[]; settingNames: readonly string[] },
): void {
  const { settings } = options as { settings?: unknown } // `settings` can have any type
  const setting = Object.keys(options).find((name) => settingNames.includes(name) && !optionNames.includes(name))
  if (setting !== undefined)
    throw new ConfigurationError(`${where}: ${setting} belongs into settings: ${where}({ settings: { ${setting}: … } }). ${see}`)
  const option = Object.keys(Object(settings)).find((name) => optionNames.includes(name) && !settingNames.includes(name))
  if (option !== undefined)
    throw new ConfigurationError(`${where}: ${option} belongs beside settings: ${where}({ ${option}: …, settings: { … } }). ${see}`)
}

const see = seeTroubleshooting('misplaced-option')
