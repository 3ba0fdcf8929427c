% Runs filters of the Kernel Adaptive Filtering Toolbox over CSV files; benchmarks/kafbox.py calls it.
% octave-cli kafbox.m LIBRARY FOLDER: reads FOLDER/<stream>.csv (features, then the target) and writes
% FOLDER/<stream>.<filter>.csv: the prediction before each sample, and the points after it.
% GAMMA, width, FILTERS, STREAMS and APART are set by kafbox.py.
arguments = argv();
addpath(genpath(arguments{1}));
folder = arguments{2};
for stream = STREAMS
  data = csvread([folder '/' stream{1} '.csv']);
  for place = 1:size(FILTERS, 1)
    if strcmp(FILTERS{place, 1}, 'krlst') && ~strcmp(stream{1}, APART)
      continue
    end
    settings = FILTERS{place, 2};
    if ~isfield(settings, 'kerneltype')
      settings.kerneltype = 'gauss';
      settings.kernelpar = width;
    end
    filter = feval(FILTERS{place, 1}, settings);
    out = zeros(size(data, 1), 2);
    for t = 1:size(data, 1)
      out(t, 1) = filter.evaluate(data(t, 1:end-1));
      filter.train(data(t, 1:end-1), data(t, end));
      out(t, 2) = size(filter.dict, 1);
    end
    dlmwrite([folder '/' stream{1} '.' FILTERS{place, 1} '.csv'], out, 'precision', 17);
  end
end
