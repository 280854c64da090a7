"""Reports, pictures and pages: everything that people look at. All drawing is here.

statistics  the mean over runs, its interval, the price of safety       data     what a report says, before any drawing
charts      charts as plain numbers                                     classes  certified, not yet, unsafe
page        the report of runs                                          html     what all pages share
explorer    the plans of a run, to walk through                         templates/  HTML, CSS and the pages' script
study_page  the report of a study: its history and its parts            field    many agents on many worlds
pictures/   worlds, plants and charts, drawn                            wording  words for labels that are numbers
"""
